// The default options of AddressSanitizer for the tests. ASAN_OPTIONS goes before them.

// To find uses of stacks after a return makes these tests several times as slow, because each fiber gets a second stack.
// clang would do it by default.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }
