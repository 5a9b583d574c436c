#include <chrono>
#include <string>
#include <utility>

#include "base/text.h"
#include "mcp/arguments.h"
#include "mcp/execution_report.h"
#include "mcp/tools/tools.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kMaxCodeBytes = size_t{16} << 20;
constexpr size_t kMaxLanguageName = 64;
constexpr size_t kMaxLibraries = 100;
constexpr size_t kMaxLibraryName = 200;
constexpr std::chrono::seconds kDefaultTimeout{30};

std::string seconds_text(std::chrono::milliseconds duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

ArgumentTable<ExecutionRequest> make_arguments(const Engine& engine) {
  ArgumentTable<ExecutionRequest> table;
  table.add(TextArgument{"code", "The whole program.", kMaxCodeBytes}, &ExecutionRequest::code);
  table.add(TextArgument{"language",
                         "One of " + join(engine.languages().names(), ", ") +
                             ", in any case; the usual short names (py, js, c++, golang, rb) work too.",
                         kMaxLanguageName, "python"},
            &ExecutionRequest::language);
  table.add(
      TextListArgument{"libraries",
                       "Packages to install first, as the language's package manager names them: numpy or pandas==2.2 "
                       "(pip), lodash@4 (npm), group:artifact:version (Maven), module/path@version (Go), "
                       "name:version (gem), name (CRAN), libfmt-dev (Debian, for C++). They are kept for later "
                       "calls. Leave it out if get_language_details lists all that the program needs.",
                       kMaxLibraries, kMaxLibraryName},
      &ExecutionRequest::libraries);
  table.add(SecondsArgument{"timeout",
                            "Seconds that the program may run; installing does not count. More than " +
                                seconds_text(engine.config().max_timeout) + " is lowered to that.",
                            kDefaultTimeout},
            &ExecutionRequest::timeout);
  return table;
}

class ExecuteCode final : public Tool {
 public:
  explicit ExecuteCode(Engine& engine) : engine_(engine), arguments_(make_arguments(engine)) {}

  std::string_view name() const override { return "execute_code"; }

  ToolDescription describe() const override {
    const bool network = engine_.network_reachable();
    ToolDescription description;
    description.name = name();
    description.title = "Run code";
    description.description =
        "Runs a program in a fresh sandbox and returns its exit code, stdout and stderr; plots and image files that it "
        "makes come back as images. Calls share nothing: no files, variables or processes. Standard input is empty. " +
        std::string(network ? "The program can reach the network." : "The program has no network.");
    description.input_schema = arguments_.schema();
    description.output_schema = execution_output_schema();
    description.open_world = network;
    return description;
  }

  ToolResult call(const Json& arguments, const ToolContext& context) const override {
    auto decoded = arguments_.decode(arguments);
    if (!decoded.problems.empty()) return refuse(Reason::kInvalidArgument, join(decoded.problems, "\n"));

    RequestContext request_context;
    request_context.stop = context.stop;
    if (context.report_progress) {
      request_context.on_progress = [&context](const Progress& progress) { context.report_progress(progress.message); };
    }
    ExecutionResult result = engine_.run(decoded.value, request_context);
    result.notes.insert(result.notes.begin(), decoded.notes.begin(), decoded.notes.end());
    return report_execution(std::move(result));
  }

  ToolResult refuse(Reason reason, const std::string& sentence) const override {
    ExecutionResult result;
    result.exit_code = 1;
    result.stderr_bytes = sentence;
    result.reason = reason;
    return report_execution(std::move(result));
  }

 private:
  Engine& engine_;
  const ArgumentTable<ExecutionRequest> arguments_;
};

}  // namespace

std::unique_ptr<Tool> make_execute_code(Engine& engine) { return std::make_unique<ExecuteCode>(engine); }

std::vector<std::unique_ptr<Tool>> make_tools(Engine& engine) {
  std::vector<std::unique_ptr<Tool>> tools;
  tools.push_back(make_execute_code(engine));
  tools.push_back(make_get_supported_languages(engine));
  tools.push_back(make_get_language_details(engine));
  return tools;
}

}  // namespace llm_sandbox::mcp
