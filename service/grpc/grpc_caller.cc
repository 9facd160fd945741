#include "service/grpc/grpc_caller.h"

#include <grpcpp/grpcpp.h>

#include "base/address.h"
#include "base/printable.h"
#include "base/sha256.h"

namespace shirabe::service {
namespace {

// gRPC carries a message in a header, of which peers take 8 KiB in all.
constexpr size_t kMaxMessageBytes = 2048;

// The value of the Authorization header.
std::string Shown(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

std::string AddressOf(const grpc::ServerContextBase& context) {
  return AddressGroup(AddressOfPeer(context.peer()));
}

}  // namespace

std::string CallerId(const grpc::ServerContextBase& context, const StatusOr<Principal>& principal) {
  if (!principal.ok()) return AddressOf(context);
  const std::string shown = Shown(context);
  // What is taken for an attempt's token may be any text: those are told apart by their address.
  const bool trial = principal->role == Principal::Role::kTrial;
  if (principal->role == Principal::Role::kClusterUser) return "person " + principal->name;
  return trial || shown.empty() ? AddressOf(context) : HexSha256(shown);
}

std::string LaneOf(const grpc::ServerContextBase& context, const ServiceContext& service_context) {
  const std::string shown = Shown(context);
  if (service_context.tokens->MustAsk(shown)) return AddressOf(context);
  return CallerId(context, service_context.tokens->Check(shown, AddressOf(context)));
}

Status CheckCaller(const grpc::ServerContextBase& context, const std::string& method,
                   const ServiceContext& service_context) {
  const v1::Rights rights = RightsOf(method);
  if (rights.audience() == v1::Rights::ANYONE || rights.audience() == v1::Rights::PODS) {
    return absl::OkStatus();
  }
  const auto principal = service_context.tokens->Check(Shown(context), AddressOf(context));
  if (principal.ok()) return CheckMethodAccess(*principal, rights);
  if (service_context.limiter != nullptr)
    RETURN_IF_ERROR(service_context.limiter->Acquire(AddressOf(context)));
  return principal.status();
}

StatusOr<Principal> CallerOf(const grpc::ServerContextBase& context,
                             const ServiceContext& service_context) {
  auto principal = service_context.tokens->Check(Shown(context), AddressOf(context));
  if (principal.ok()) principal->listener = "grpc";
  if (service_context.limiter == nullptr) return principal;
  RETURN_IF_ERROR(service_context.limiter->Acquire(CallerId(context, principal)));
  return principal;
}

// The details, a google.rpc.Status that has its code alone, tell what a server has said itself from
// what gRPC says of its connection.
grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  return {code, Printable(Message(status).substr(0, kMaxMessageBytes)),
          std::string{'\x08', static_cast<char>(code)}};
}

}  // namespace shirabe::service
