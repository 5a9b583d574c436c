#include <string>

#include "base/text.h"
#include "mcp/arguments.h"
#include "mcp/json_writer.h"
#include "mcp/language_details.h"
#include "mcp/tools/tools.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kMaxLanguageName = 64;

void write_names(JsonWriter& writer, const std::vector<std::string>& names) {
  writer.begin_array();
  for (const auto& name : names) writer.string(name);
  writer.end_array();
}

class GetSupportedLanguages final : public Tool {
 public:
  explicit GetSupportedLanguages(Engine& engine) : engine_(engine) {}

  std::string_view name() const override { return "get_supported_languages"; }

  ToolDescription describe() const override {
    ToolDescription description;
    description.name = name();
    description.title = "List languages";
    description.description =
        "Lists the languages that execute_code knows, as a JSON array of names. get_language_details tells which of "
        "them are installed here.";
    description.input_schema = object_schema({});
    description.read_only = true;
    return description;
  }

  ToolResult call(const Json&, const ToolContext&) const override {
    std::string text;
    JsonWriter writer(text, 2);
    write_names(writer, engine_.languages().names());
    return ToolResult{{TextContent{std::move(text)}}, {}, false};
  }

 private:
  Engine& engine_;
};

struct LanguageDetailsArguments {
  std::string language;
};

class GetLanguageDetails final : public Tool {
 public:
  explicit GetLanguageDetails(Engine& engine) : engine_(engine) {
    arguments_.add(TextArgument{"language",
                                "The language: one of " + join(engine.languages().names(), ", ") +
                                    ", in any case; the usual short names (py, js, c++, golang, rb) work too.",
                                kMaxLanguageName},
                   &LanguageDetailsArguments::language);
  }

  std::string_view name() const override { return "get_language_details"; }

  ToolDescription describe() const override {
    ToolDescription description;
    description.name = name();
    description.title = "Language details";
    description.description =
        "Tells what is really installed of a language: its version, package manager, libraries that a program can "
        "import at once, whether plots are captured, and examples that run. Where a language is not available it says "
        "how to install it.";
    description.input_schema = arguments_.schema();
    description.read_only = true;
    return description;
  }

  ToolResult call(const Json& arguments, const ToolContext&) const override {
    const auto decoded = arguments_.decode(arguments);
    if (!decoded.problems.empty()) return refuse(Reason::kInvalidArgument, join(decoded.problems, "\n"));
    const Language* language = engine_.languages().find(decoded.value.language);
    if (language == nullptr) return unknown(decoded.value.language);
    std::string text;
    JsonWriter writer(text, 2);
    write_language_details(writer, *language, engine_.report(*language));
    return ToolResult{{TextContent{std::move(text)}}, {}, false};
  }

 private:
  ToolResult unknown(const std::string& asked) const {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object().key("error").string("Unsupported language: " + asked).key("supported");
    write_names(writer, engine_.languages().names());
    writer.end_object();
    return ToolResult{{TextContent{std::move(text)}}, {}, false};
  }

  Engine& engine_;
  ArgumentTable<LanguageDetailsArguments> arguments_;
};

}  // namespace

std::unique_ptr<Tool> make_get_supported_languages(Engine& engine) {
  return std::make_unique<GetSupportedLanguages>(engine);
}

std::unique_ptr<Tool> make_get_language_details(Engine& engine) { return std::make_unique<GetLanguageDetails>(engine); }

}  // namespace llm_sandbox::mcp
