#include <ulexite/runtime/inspect/symbols.hpp>

#include <cstddef>
#include <cstring>
#include <span>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

// A file that is not trusted: each access is checked against its size.
class mapped_file {
 public:
  explicit mapped_file(const char* path) noexcept {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (fd >= 0 && ::fstat(fd, &status) == 0 && status.st_size > 0) {
      const auto size = static_cast<std::size_t>(status.st_size);
      void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(memory), size};
    }
    if (fd >= 0) ::close(fd);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  // `count` objects at `offset`; none if they are not within the file.
  template <class T>
  [[nodiscard]] std::span<const T> at(std::size_t offset, std::size_t count) const noexcept {
    if (offset % alignof(T) != 0 || offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }

 private:
  std::span<const std::byte> bytes_;
};

std::string find_in(const mapped_file& file, const ElfW(Shdr) & table, const ElfW(Shdr) & names,
                    std::uintptr_t offset) {
  const auto text = file.at<char>(names.sh_offset, names.sh_size);
  for (const ElfW(Sym) & each : file.at<ElfW(Sym)>(table.sh_offset, table.sh_size / sizeof(ElfW(Sym)))) {
    if (ELF64_ST_TYPE(each.st_info) != STT_FUNC || offset < each.st_value || offset - each.st_value >= each.st_size)
      continue;
    if (each.st_name >= text.size()) continue;
    const char* const name = text.data() + each.st_name;
    return {name, ::strnlen(name, text.size() - each.st_name)};
  }
  return {};
}

}  // namespace

std::string symbol_in_file(const char* module, std::uintptr_t offset) {
  const mapped_file file(module);
  const auto header = file.at<ElfW(Ehdr)>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto sections = file.at<ElfW(Shdr)>(header[0].e_shoff, header[0].e_shnum);
  for (const ElfW(Shdr) & each : sections)
    if (each.sh_type == SHT_SYMTAB && each.sh_link < sections.size())
      return find_in(file, each, sections[each.sh_link], offset);
  return {};
}

}  // namespace ulexite::detail
