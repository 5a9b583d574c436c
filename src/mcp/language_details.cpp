#include "mcp/language_details.h"

namespace llm_sandbox::mcp {
namespace {

void write_strings(JsonWriter& writer, const std::vector<std::string>& strings) {
  writer.begin_array();
  for (const auto& text : strings) writer.string(text);
  writer.end_array();
}

}  // namespace

void write_language_details(JsonWriter& writer, const Language& language, const LanguageReport& report) {
  writer.begin_object();
  writer.key("version").string(report.version);
  writer.key("package_manager").string(language.package_manager);
  writer.key("preinstalled_libraries");
  write_strings(writer, report.libraries);
  writer.key("use_cases");
  write_strings(writer, language.use_cases);
  writer.key("visualization_support").boolean(language.visualization_support);
  writer.key("examples").begin_array();
  for (const auto& example : language.examples) {
    writer.begin_object().key("title").string(example.title).key("description").string(example.description);
    writer.key("code").string(example.code).end_object();
  }
  writer.end_array();
  writer.key("available").boolean(report.available);
  if (!report.available) writer.key("how_to_install").string(report.how_to_install);
  writer.end_object();
}

}  // namespace llm_sandbox::mcp
