// Conditional requests: a reply to GET has an ETag, and who sends it back as If-None-Match gets 304
// without a body while nothing has changed. A route that knows the version of what it answers says
// so before it answers (routes_charts.cc); of any other JSON the tag is made of the body (the
// router), which saves the way and the reading of it. Pure functions, any thread.
#pragma once

#include <string>

#include "service/http/http_message.h"

namespace shirabe::service {

// "1700000000-17"
std::string EtagOf(const std::string& version);
// Of the bytes of a body; the same in any process.
std::string EtagOfBody(const std::string& body);
// Whether If-None-Match names this tag, or is *.
bool IsKnown(const HttpRequest& request, const std::string& etag);
// The version that If-None-Match names first, as EtagOf was given it; "" without one.
std::string KnownVersion(const HttpRequest& request);
HttpReply NotModified(const std::string& etag);
// The reply with the tag of its body, or 304, where it is JSON that has no tag yet.
HttpReply Conditional(const HttpRequest& request, HttpReply reply);

}  // namespace shirabe::service
