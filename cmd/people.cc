#include "cmd/people.h"

#include <utility>

namespace shirabe::cmd {
namespace {

const char* VerbOf(service::Act act) {
  switch (act) {
    case service::Act::kLook: return "list";
    case service::Act::kCreate: return "create";
    case service::Act::kChange: return "update";
    case service::Act::kDelete: return "delete";
  }
  return "delete";
}

}  // namespace

service::Tokens::Introduce PeopleOf(kube::Reviewer* reviewer) {
  return [reviewer](const std::string& token,
                    const std::string& from) -> StatusOr<service::Principal> {
    ASSIGN_OR_RETURN(kube::Person person, reviewer->Review(token, from));
    service::Principal principal{.role = service::Principal::Role::kPerson, .name = person.name};
    principal.judge_metrics = [reviewer, person] {
      return reviewer->MayDo(person, {.verb = "get", .path = "/metrics"});
    };
    principal.judge = [reviewer, person = std::move(person)](service::Act act,
                                                             const std::string& ns) {
      return reviewer->MayDo(person, {.verb = VerbOf(act),
                                      .group = "kubeflow.org",
                                      .resource = "experiments",
                                      .namespace_name = ns});
    };
    return principal;
  };
}

}  // namespace shirabe::cmd
