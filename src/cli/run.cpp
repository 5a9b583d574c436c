#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/text.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "mcp/execution_report.h"
#include "mcp/stop_signals.h"

namespace llm_sandbox {
namespace {

constexpr size_t kMaxProgramBytes = size_t{16} << 20;
/// What is not done when this process ends would have to be begun anew by the next.
constexpr std::chrono::minutes kPreparationPatience{10};

Result<std::string> read_program(const RunOptions& options) {
  if (options.code) return *options.code;
  const bool from_stdin = options.file == "-";
  const UniqueFd file(from_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                 : open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(options.file, errno);
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(options.file, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > kMaxProgramBytes) return fail(ErrorCode::kTooLarge, options.file + " is larger than 16 MiB.");
  }
}

/// By the ending of the file's name; python for a text, stdin and files without an ending.
Result<std::string> language_of(const RunOptions& options, const LanguageCatalog& languages) {
  if (!options.language.empty()) return options.language;
  const std::string name = options.file.substr(options.file.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return "python";
  const std::string ending = to_lower(name.substr(dot));
  for (const auto& language : languages.all()) {
    const auto& more = language.file_endings;
    if (to_lower(language.file_name).ends_with(ending) || std::find(more.begin(), more.end(), ending) != more.end())
      return language.name;
    for (const auto& [asked, file] : language.file_names)
      if (file.ends_with(ending)) return asked;
  }
  return fail(ErrorCode::kInvalidArgument, "'" + options.file + "' does not say in which language it is written.",
              "Name it with --language.");
}

/// Requests a stop once the process is told to end (SIGINT, SIGTERM, SIGHUP). Made before the first other thread.
class StopOnSignal {
 public:
  explicit StopOnSignal(const std::stop_source& stop) : signals_(mcp::open_stop_signals()) {
    if (!signals_) return;
    thread_ = std::jthread([this, stop](std::stop_token end) {
      const StopWakeup wakeup(end);
      if (wait_for(signals_->get(), POLLIN, Deadline::never(), wakeup) != WaitResult::kReady) return;
      signalfd_siginfo info{};
      if (read(signals_->get(), &info, sizeof info) == sizeof info) signal_ = static_cast<int>(info.ssi_signo);
      stop.request_stop();
    });
  }
  /// The signal that came; 0 if none did.
  int signal() const { return signal_; }

 private:
  Result<UniqueFd> signals_;
  std::atomic<int> signal_{0};
  std::jthread thread_;
};

/// The last part of an artifact's name, made fit for a file name.
std::string file_name_for(const Artifact& artifact, size_t number) {
  std::string name = artifact.name.substr(artifact.name.rfind('/') + 1);
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == '/' || c == '\\') c = '_';
  return std::to_string(number) + "-" + (name.empty() ? "plot" : name.substr(0, 100));
}

/// Saves pictures into a folder of the user's choice and tells where. What is there is not overwritten through a link.
bool save_plots(const ExecutionResult& result, const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    write_all(STDERR_FILENO, "llm-sandbox: " + errno_error("cannot make the folder " + folder, errno).sentence + "\n");
    return false;
  }
  size_t number = 0;
  for (const auto& artifact : result.artifacts) {
    const std::string path = folder + "/" + file_name_for(artifact, ++number);
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file || !write_all(file.get(), artifact.content)) {
      write_all(STDERR_FILENO, "llm-sandbox: " + errno_error("cannot write " + path, errno).sentence + "\n");
      return false;
    }
    write_all(STDERR_FILENO, "saved " + path + " (" + artifact.mime_type + ")\n");
  }
  return true;
}

bool could_not_run(const ExecutionResult& result) {
  return result.reason == Reason::kBackendUnavailable || result.reason == Reason::kInvalidArgument ||
         result.reason == Reason::kPolicy || result.reason == Reason::kInstallFailed;
}

void tell(const ExecutionResult& result) {
  if (could_not_run(result) && !result.stderr_bytes.empty())
    write_all(STDERR_FILENO, styled(STDERR_FILENO, Style::kBad, "llm-sandbox: ") + result.stderr_bytes + "\n");
  for (const auto& note : result.notes)
    write_all(STDERR_FILENO, styled(STDERR_FILENO, Style::kWarning, "llm-sandbox: ") + note + "\n");
}

}  // namespace

int run_command(const Settings& settings, const RunOptions& options) {
  EngineConfig config = settings.engine_config();
  config.preparation_patience = kPreparationPatience;
  Engine engine(std::move(config), settings.lookup(), settings.backend_factory());
  auto code = read_program(options);
  if (!code) {
    write_all(STDERR_FILENO, "llm-sandbox: " + code.error().text() + "\n");
    return kCouldNotRun;
  }

  auto language = language_of(options, engine.languages());
  if (!language && !engine.config().runtime) language = fail(engine.config().runtime.error());  // it may name more
  if (!language) {
    write_all(STDERR_FILENO, "llm-sandbox: " + language.error().text() + "\n");
    return kCouldNotRun;
  }

  ExecutionRequest request;
  request.code = std::move(*code);
  request.language = std::move(*language);
  request.libraries = options.libraries;
  request.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout_seconds * 1000));

  std::stop_source stop;
  const StopOnSignal on_signal(stop);
  StatusLine status;
  RequestContext context;
  context.stop = stop.get_token();
  bool printed = false;
  int output_error = 0;
  context.on_progress = [&](const Progress& progress) {
    if (!printed) status.show(progress.message);
  };
  if (!options.json) {
    context.on_output = [&](Stream stream, std::string_view bytes) {
      status.clear();
      printed = true;
      const int fd = stream == Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO;
      if (output_error != 0 || write_all(fd, bytes)) return;
      output_error = errno;
      stop.request_stop();
    };
  }
  const ExecutionResult result = engine.run(request, context);
  status.clear();

  engine.drain(Deadline::after(std::chrono::seconds(2)));
  if (on_signal.signal() != 0) return 128 + on_signal.signal();
  if (output_error == EPIPE) return 128 + SIGPIPE;
  if (output_error != 0) {
    write_all(STDERR_FILENO, "llm-sandbox: " + errno_error("cannot write the output", output_error).sentence + "\n");
    return kCouldNotRun;
  }
  if (options.json) print(mcp::result_text(result) + "\n");
  if (!options.json) tell(result);
  const bool saved = options.plots_folder.empty() || save_plots(result, options.plots_folder);
  if (could_not_run(result) || !saved) return kCouldNotRun;
  return result.exit_code;
}

}  // namespace llm_sandbox
