// The default options of the sanitizers for the tests. Their environment variables override them.

// To find uses of stacks after a return makes these tests several times as slow, because each fiber gets a second
// stack. clang's default is to find them.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }

// The last of several fibers that have had an exception destroys it. libstdc++ counts the references, but its code is
// not instrumented. So ThreadSanitizer sees no order between the others' reads and the end.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:^std::runtime_error::~runtime_error\n"
         "race:^std::__exception_ptr::exception_ptr::_M_release\n";
}
