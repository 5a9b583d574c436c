#include "sandbox/artifacts.h"

#include <doctest/doctest.h>

using namespace llm_sandbox;

TEST_CASE("sniff_mime_type goes by content") {
  CHECK(sniff_mime_type("\x89PNG\r\n\x1a\n....") == "image/png");
  CHECK(sniff_mime_type("\xff\xd8\xff\xe0") == "image/jpeg");
  CHECK(sniff_mime_type("GIF89a...") == "image/gif");
  CHECK(sniff_mime_type(std::string_view("RIFF\x10\0\0\0WEBPVP8 ", 16)) == "image/webp");
  CHECK(sniff_mime_type("RIFF1234WAVE") == "");
  CHECK(sniff_mime_type("%PDF-1.4") == "application/pdf");
  CHECK(sniff_mime_type("  <!DOCTYPE html><p>") == "text/html");
  CHECK(sniff_mime_type("<?xml version=\"1.0\"?>\n<!-- c -->\n<svg xmlns=\"x\">") == "image/svg+xml");
  CHECK(sniff_mime_type("<svg width=\"1\">") == "image/svg+xml");
  CHECK(sniff_mime_type("<?xml version=\"1.0\"?><note/>") == "");
  CHECK(sniff_mime_type("") == "");
  CHECK(sniff_mime_type("plain <svg") == "");
}
