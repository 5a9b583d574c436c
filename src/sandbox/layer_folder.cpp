#include "sandbox/layer_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string_view>

namespace llm_sandbox {
namespace {

constexpr size_t kIdLength = 64;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr const char* kElsewhere = "name another folder with --cache-dir or LLM_SANDBOX_CACHE_DIR.";

bool is_root() { return geteuid() == 0; }

/// Root's sandboxes run under ids of their own, which must get through to the layers but need not see what is there.
mode_t passable_mode() { return is_root() ? 0711 : 0700; }

Error unusable(const std::string& path, const std::string& why, const std::string& mend = {}) {
  return Error{ErrorCode::kIo, "The cache folder " + path + " cannot be used: " + why + ".",
               mend.empty() ? "Mend this, or " + std::string(kElsewhere) : mend + ", or " + kElsewhere};
}

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", mode & 07777U);
  return text;
}

std::optional<std::string> without_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return std::nullopt;
  return std::string(resolved.get());
}

/// Whoever can change the folder could show the sandboxes what he likes, or have root give files away.
Result<void> check_owner(const std::string& path, const struct stat& info) {
  if (info.st_uid != geteuid())
    return fail(unusable(path, "it belongs to another user (id " + std::to_string(info.st_uid) + ")"));
  if ((info.st_mode & kWritableByOthers) != 0)
    return fail(unusable(path, "others than its owner may write to it (mode " + octal(info.st_mode) + ")",
                         "Run: chmod go-w " + path));
  return {};
}

/// Root's folder must lie where nobody else can replace it, and where the sandboxes' ids reach it: `above` and all
/// folders above that. `path` is for the error.
Result<void> check_above_for_root(std::string above, const std::string& path) {
  while (true) {
    if (above.empty()) above = "/";
    struct stat info {};
    if (lstat(above.c_str(), &info) != 0) return fail(unusable(path, errno_error(above, errno).sentence));
    const bool replaceable = (info.st_mode & kWritableByOthers) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (info.st_uid != 0 || replaceable)
      return fail(unusable(path, "others than root may change the folder " + above + " above it (owner " +
                                     std::to_string(info.st_uid) + ", mode " + octal(info.st_mode) + ")"));
    if ((info.st_mode & S_IXOTH) == 0)
      return fail(unusable(path, "sandboxes of a server that runs as root have ids of their own, which the folder " +
                                     above + " does not let through (mode " + octal(info.st_mode) + ")"));
    if (above == "/") return {};
    above.resize(above.rfind('/'));
  }
}

/// Makes the folder below what is there of its path, which for root must be safe already: a link planted on the way
/// would have it make folders elsewhere.
Result<std::string> make_with_parents(const std::string& path) {
  std::filesystem::path above(path);
  if (above.is_relative()) above = std::filesystem::current_path() / above;
  std::vector<std::string> missing;
  auto made = without_links(above);
  for (; !made && errno == ENOENT && above.has_relative_path(); made = without_links(above)) {
    if (above.has_filename()) missing.push_back(above.filename());
    above = above.parent_path();
  }
  if (!made) return fail(unusable(path, errno_error("it cannot be made", errno).sentence));
  if (*made == "/") made->clear();
  if (is_root())
    if (auto checked = check_above_for_root(*made, path); !checked) return fail(std::move(checked.error()));
  for (auto name = missing.rbegin(); name != missing.rend(); ++name) {
    const bool is_last = name + 1 == missing.rend();
    *made += "/" + *name;
    if (!make_folder(AT_FDCWD, *made, is_root() && !is_last ? 0755 : passable_mode()))
      return fail(unusable(path, errno_error("it cannot be made", errno).sentence));
  }
  return *made;
}

Result<UniqueFd> open_folder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), kFolderFlags));
  struct stat info {};
  if (!folder || fstat(folder.get(), &info) != 0)
    return fail(unusable(path, errno_error("opening it", errno).sentence));
  if (auto checked = check_owner(path, info); !checked) return fail(std::move(checked.error()));
  if ((info.st_mode & passable_mode()) != passable_mode())
    return fail(unusable(path, "its mode " + octal(info.st_mode) + " is too narrow",
                         "Run: chmod " + octal(info.st_mode | passable_mode()) + " " + path));
  if (is_root() && path != "/")
    if (auto checked = check_above_for_root(path.substr(0, path.rfind('/')), path); !checked)
      return fail(std::move(checked.error()));
  return folder;
}

/// One of the folders in the cache's own.
Result<UniqueFd> open_part(int root, const std::string& name, mode_t mode, const std::string& path,
                           LayerFolder::Missing missing) {
  if (missing == LayerFolder::Missing::kIsMade && !make_folder(root, name, mode))
    return fail(unusable(path, errno_error(name + " cannot be made in it", errno).sentence));
  UniqueFd part(openat(root, name.c_str(), kFolderFlags));
  struct stat info {};
  if (!part && errno == ENOENT) return fail(ErrorCode::kNotFound, "There is no cache in " + path + ".");
  if (!part || fstat(part.get(), &info) != 0) return fail(unusable(path, errno_error(name, errno).sentence));
  if (auto checked = check_owner(path + "/" + name, info); !checked) return fail(std::move(checked.error()));
  return part;
}

/// Whether the open file is still what stands under this name.
bool stands_at(int fd, int folder, const std::string& name) {
  struct stat open_one {};
  struct stat named {};
  return fstat(fd, &open_one) == 0 && fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  auto stream = FolderStream::open(folder, ".", FolderStream::Access::kRead);
  if (!stream) return names;
  while (const char* name = stream->next()) names.emplace_back(name);
  return names;
}

bool is_id(std::string_view name) {
  return name.size() == kIdLength && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string fresh_name(const std::string& id) {
  std::random_device random;
  return id + "-" + std::to_string(getpid()) + "-" + std::to_string(random()) + std::to_string(random());
}

}  // namespace

Result<LayerFolder> LayerFolder::open(const std::string& path, Missing missing) {
  if (path.empty())
    return fail(ErrorCode::kIo, "There is no folder for the cache, as neither HOME nor XDG_CACHE_HOME is set.",
                "Set one of them, or " + std::string(kElsewhere));
  auto resolved = without_links(path);
  if (!resolved && errno == ENOENT) {
    if (missing == Missing::kIsAnError) return fail(ErrorCode::kNotFound, "There is no folder " + path + ".");
    const auto made = make_with_parents(path);
    if (!made) return fail(Error(made.error()));
    resolved = without_links(*made);
  }
  if (!resolved) return fail(unusable(path, errno_error("it cannot be reached", errno).sentence));

  auto root = open_folder(*resolved);
  if (!root) return fail(std::move(root.error()));
  auto layers = open_part(root->get(), "layers", passable_mode(), *resolved, missing);
  if (!layers) return fail(std::move(layers.error()));
  auto making = open_part(root->get(), "making", passable_mode(), *resolved, missing);
  if (!making) return fail(std::move(making.error()));
  auto locks = open_part(root->get(), "locks", S_IRWXU, *resolved, missing);
  if (!locks) return fail(std::move(locks.error()));

  LayerFolder folder;
  folder.path_ = std::move(*resolved);
  folder.layers_ = std::move(*layers);
  folder.making_ = std::move(*making);
  folder.locks_ = std::move(*locks);
  return folder;
}

Error LayerFolder::error(const std::string& what, int error_number) const {
  const std::string why = errno_error(what, error_number).sentence;
  if (error_number != ENOSPC && error_number != EDQUOT) return unusable(path_, why);
  return unusable(path_, why, "Make room there (llm-sandbox cache clear)");
}

Result<std::optional<UniqueFd>> LayerFolder::try_lock(const std::string& id, int operation) const {
  while (true) {
    UniqueFd lock(openat(locks_.get(), id.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!lock) return fail(error("a lock cannot be made", errno));
    if (flock(lock.get(), operation | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::optional<UniqueFd>();
      if (errno == EINTR) continue;
      return fail(error("a lock cannot be taken", errno));
    }
    if (stands_at(lock.get(), locks_.get(), id)) return std::optional<UniqueFd>(std::move(lock));
    // Its last holder has removed the file meanwhile: whoever comes next would lock another one.
  }
}

std::optional<UniqueFd> LayerFolder::share_lock(UniqueFd lock, const std::string& id) const {
  if (flock(lock.get(), LOCK_SH | LOCK_NB) != 0 || !stands_at(lock.get(), locks_.get(), id)) return std::nullopt;
  return lock;
}

void LayerFolder::forget_lock(const std::string& id) const { unlinkat(locks_.get(), id.c_str(), 0); }

Result<std::string> LayerFolder::start_making(const std::string& id) const {
  std::string name = fresh_name(id);
  if (!make_folder(making_.get(), name, passable_mode())) return fail(error("a folder cannot be made in it", errno));
  return name;
}

bool LayerFolder::remove_layer(const std::string& id, Patience& patience) const {
  const std::string name = fresh_name(id);
  if (renameat(layers_.get(), id.c_str(), making_.get(), name.c_str()) != 0) return errno == ENOENT;
  remove_tree(making_.get(), name, patience);
  return true;
}

void LayerFolder::sweep(const std::string& held, Patience& patience) const {
  std::map<std::string, std::vector<std::string>> leftovers;
  for (const auto& name : names_in(making_.get()))
    if (const std::string id = name.substr(0, kIdLength); is_id(id)) leftovers[id].push_back(name);
  for (const auto& id : names_in(locks_.get()))
    if (is_id(id) && !has_layer(id)) leftovers[id];

  for (const auto& [id, names] : leftovers) {
    if (patience.ended()) return;
    const auto lock = id == held ? std::optional<UniqueFd>(UniqueFd()) : try_lock(id, LOCK_EX).value_or(std::nullopt);
    if (!lock) continue;
    for (const auto& name : names) remove_tree(making_.get(), name, patience);
    if (id != held && !has_layer(id)) forget_lock(id);
  }
}

std::vector<std::string> LayerFolder::layer_ids() const {
  auto names = names_in(layers_.get());
  std::erase_if(names, [](const std::string& name) { return !is_id(name); });
  return names;
}

bool LayerFolder::has_layer(const std::string& id) const { return faccessat(layers_.get(), id.c_str(), F_OK, 0) == 0; }

bool make_folder(int parent, const std::string& name, mode_t mode) {
  if (mkdirat(parent, name.c_str(), mode) != 0) return errno == EEXIST;
  return fchmodat(parent, name.c_str(), mode, 0) == 0;
}

}  // namespace llm_sandbox
