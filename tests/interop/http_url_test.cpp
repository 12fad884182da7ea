// http::url.

#include <ulexite/interop/http.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ulexite;

TEST(HttpUrl, IsSplit) {
  const http::url at = http::url::parse("HTTPS://example.org:8443/a/b?c=d#e");
  EXPECT_TRUE(at.secure);
  EXPECT_EQ(at.host + '|' + at.authority + '|' + at.target, "example.org|example.org:8443|/a/b?c=d");
  EXPECT_EQ(at.port, 8443);
  EXPECT_EQ(http::url::parse("http://x").target, "/");
  EXPECT_EQ(http::url::parse("http://x?q").target, "/?q");
  EXPECT_EQ(http::url::parse("http://x").port, 80);
  EXPECT_EQ(http::url::parse("https://x:").port, 443);
  EXPECT_EQ(http::url::parse("http://[::1]:80/").host, "::1");
  EXPECT_EQ(http::url::parse("http://[::1]").port, 80);
  for (const char* wrong :
       {"", "x", "ftp://x/", "http://", "http:///x", "http://a@b/", "http://x:0/", "http://x:65536/", "http://x:1x/",
        "http://[::1", "http://a b/", "http://x/a b", "http://x/\r\nX: y", "http://x/\xc3\xbc", "http://::1/"})
    EXPECT_THROW((void)http::url::parse(wrong), std::invalid_argument) << wrong;
  try {
    (void)http::url::parse("http://x:99999/");
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "\"http://x:99999/\" is no address of HTTP: its port is none");
  }
}

TEST(HttpUrl, ResolvesReferences) {
  const http::url at = http::url::parse("http://x:81/a/b/c?d");
  const auto to = [&](std::string_view reference) {
    const http::url made = at.resolve(reference);
    return made.origin() + made.target;
  };
  EXPECT_EQ(to("https://y/z"), "https://y/z");
  EXPECT_EQ(to("//y:1/z"), "http://y:1/z");
  EXPECT_EQ(to("/z?e#f"), "http://x:81/z?e");
  EXPECT_EQ(to("z"), "http://x:81/a/b/z");
  EXPECT_EQ(to("../z"), "http://x:81/a/z");
  EXPECT_EQ(to("../../../z/."), "http://x:81/z/");
  EXPECT_EQ(to("?e"), "http://x:81/a/b/c?e");
  EXPECT_EQ(to("#f"), "http://x:81/a/b/c?d");
  EXPECT_EQ(to("./z:1"), "http://x:81/a/b/z:1");
}

}  // namespace
