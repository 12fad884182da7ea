#include <ulexite/base/nul.hpp>
#include <ulexite/os/walk.hpp>
#include <ulexite/sync/blocking.hpp>

#include <fts.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace ulexite::detail {
namespace {

using os::walk_entry;
using os::walk_options;

constexpr std::size_t batch_size = 256;

std::filesystem::file_type type_of(const FTSENT& entry) noexcept {
  using std::filesystem::file_type;
  if (entry.fts_info == FTS_NS) return file_type::unknown;
  switch (entry.fts_statp->st_mode & S_IFMT) {
    case S_IFREG: return file_type::regular;
    case S_IFDIR: return file_type::directory;
    case S_IFLNK: return file_type::symlink;
    case S_IFBLK: return file_type::block;
    case S_IFCHR: return file_type::character;
    case S_IFIFO: return file_type::fifo;
    case S_IFSOCK: return file_type::socket;
    default: return file_type::unknown;
  }
}

int error_of(const FTSENT& entry) noexcept {
  switch (entry.fts_info) {
    case FTS_DC: return ELOOP;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS: return entry.fts_errno;
    default: return 0;
  }
}

walk_entry described(const FTSENT& entry) {
  walk_entry result;
  result.path = std::string(entry.fts_path, entry.fts_pathlen);
  result.type = type_of(entry);
  if (result.type == std::filesystem::file_type::regular)
    result.size = static_cast<std::uint64_t>(entry.fts_statp->st_size);
  result.depth = static_cast<std::size_t>(entry.fts_level);
  result.error.assign(error_of(entry), std::system_category());
  return result;
}

}  // namespace

// fts(3) detects cycles, and reports the error of each entry. Its change of the working directory is off, because it
// would affect the whole process.
struct directory_walk::tree {
  tree(const std::filesystem::path& from, walk_options with) : root(from), options(with) {
    std::string path = root;
    if (has_nul(path)) fail(EINVAL);  // fts would take the text before it
    char* const paths[] = {path.data(), nullptr};
    const int links = options.follow_symlinks ? FTS_LOGICAL : FTS_PHYSICAL | FTS_COMFOLLOW;
    handle = ::fts_open(paths, links | FTS_NOCHDIR, nullptr);
    if (!handle) fail(errno);
  }
  ~tree() { ::fts_close(handle); }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;

  [[noreturn]] void fail(int number) const {
    throw std::system_error(number, std::system_category(), "ulexite: walking " + shown(root.string()));
  }

  void fill(std::vector<walk_entry>& batch) {
    batch.clear();
    while (batch.size() < batch_size) {
      errno = 0;
      FTSENT* const entry = ::fts_read(handle);
      if (!entry && errno != 0) fail(errno);
      if (!entry) return;
      if (entry->fts_level == 0) {
        check_root(*entry);
      } else if (entry->fts_info != FTS_DP) {
        if (entry->fts_info == FTS_D && !options.recursive) ::fts_set(handle, entry, FTS_SKIP);
        batch.push_back(described(*entry));
      }
    }
  }

  void check_root(const FTSENT& entry) const {
    if (const int number = error_of(entry)) fail(number);
    if (entry.fts_info != FTS_D && entry.fts_info != FTS_DP) fail(ENOTDIR);
  }

  const std::filesystem::path root;
  const walk_options options;
  FTS* handle = nullptr;
};

directory_walk::directory_walk(const std::filesystem::path& root, walk_options options)
    : tree_(blocking([&] { return std::make_unique<tree>(root, options); })) {}

directory_walk::~directory_walk() = default;

const std::vector<walk_entry>& directory_walk::fetch() {
  blocking([this] { tree_->fill(batch_); });
  return batch_;
}

}  // namespace ulexite::detail
