// The methods of shirabe.v1.Shirabe, each with the function that answers it: how an implementation
// of client.h that knows its methods one by one finds them. Filled by a constructor, then any
// thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"

namespace shirabe::client {

class MethodTable {
 public:
  // `answer` is a method of `object`, which outlives the table: of a request, the reply, or all
  // replies of a stream; or of a request and a Sink for them. Types that the .proto has otherwise
  // end the process at start.
  template <class Object, class Request, class Reply>
  void Add(const std::string& name, Object* object,
           StatusOr<Reply> (Object::*answer)(const Request&)) {
    Put<Request, Reply>(name, [object, answer](const Request& request, const Sink& sink) -> Status {
      ASSIGN_OR_RETURN(Reply reply, (object->*answer)(request));
      return sink(reply);
    });
  }
  template <class Object, class Request, class Reply>
  void Add(const std::string& name, Object* object,
           StatusOr<std::vector<Reply>> (Object::*answer)(const Request&)) {
    Put<Request, Reply>(name, [object, answer](const Request& request, const Sink& sink) -> Status {
      ASSIGN_OR_RETURN(auto replies, (object->*answer)(request));
      for (Reply& reply : replies) RETURN_IF_ERROR(sink(reply));
      return absl::OkStatus();
    });
  }
  template <class Reply, class Object, class Request>
  void AddStream(const std::string& name, Object* object,
                 Status (Object::*answer)(const Request&, const Sink&)) {
    Put<Request, Reply>(name, [object, answer](const Request& request, const Sink& sink) {
      return (object->*answer)(request, sink);
    });
  }

  // kUnimplemented for a method without an answer.
  Status Call(const Method& method, const google::protobuf::Message& request,
              const Sink& sink) const {
    CHECK(request.GetDescriptor() == method.input_type());
    const auto found = answers_.find(&method);
    if (found != answers_.end()) return found->second(request, sink);
    return absl::UnimplementedError(absl::StrCat(method.name(), " is not answered here"));
  }

 private:
  template <class Request, class Reply, class Answer>
  void Put(const std::string& name, Answer answer) {
    const Method& method = MethodOf(name);
    CHECK(method.input_type() == Request::descriptor());
    CHECK(method.output_type() == Reply::descriptor());
    const auto untyped = [answer](const google::protobuf::Message& request, const Sink& sink) {
      return answer(static_cast<const Request&>(request), sink);
    };
    CHECK(answers_.emplace(&method, untyped).second);
  }

  std::map<const Method*, std::function<Status(const google::protobuf::Message&, const Sink&)>>
      answers_;
};

}  // namespace shirabe::client
