#include "service/http_connections.h"

#include <utility>

namespace shirabe::service {

ConnectionTable::Seat ConnectionTable::Find(const std::string& address) {
  const auto found = counts_.find(address);
  const Count count = found == counts_.end() ? Count{} : found->second;
  const bool too_many = limits_.address > 0 && count.table >= limits_.address;
  if (too_many) return FindReserve(count);
  if (entries_.size() - reserved_ < limits_.all || MakeRoom()) return Seat::kTable;
  return FindReserve(count);
}

bool ConnectionTable::MakeRoom() {
  for (Queue* queue : {&unknown_, &idle_}) {
    if (queue->empty()) continue;
    queue->front()->Close();
    return entries_.size() - reserved_ < limits_.all;
  }
  return false;
}

ConnectionTable::Seat ConnectionTable::FindReserve(const Count& count) {
  if (count.reserve >= limits_.reserve_address || limits_.reserve == 0) return Seat::kNone;
  if (reserved_ >= limits_.reserve) reserve_.front()->Close();
  return Seat::kReserve;
}

void ConnectionTable::Enter(Connection* connection, const std::string& address, Seat seat) {
  Count& count = counts_[address];
  ++(seat == Seat::kReserve ? count.reserve : count.table);
  if (seat == Seat::kReserve) ++reserved_;
  entries_[connection] = Entry{address, seat, nullptr, {}};
  SetStanding(connection, Standing::kUnknown);
}

void ConnectionTable::SetStanding(Connection* connection, Standing standing) {
  const auto found = entries_.find(connection);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const bool reserve = entry.seat == Seat::kReserve;
  if (reserve && entry.queue != nullptr) return;  // it keeps its place: it is not to stay
  if (entry.queue != nullptr) entry.queue->erase(entry.place);
  entry.queue = reserve                          ? &reserve_
                : standing == Standing::kUnknown ? &unknown_
                : standing == Standing::kIdle    ? &idle_
                                                 : nullptr;
  if (entry.queue != nullptr) entry.place = entry.queue->insert(entry.queue->end(), connection);
}

void ConnectionTable::Leave(Connection* connection) {
  const auto found = entries_.find(connection);
  if (found == entries_.end()) return;
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  if (entry.queue != nullptr) entry.queue->erase(entry.place);
  const bool reserve = entry.seat == Seat::kReserve;
  if (reserve) --reserved_;
  const auto count = counts_.find(entry.address);
  --(reserve ? count->second.reserve : count->second.table);
  if (count->second.table + count->second.reserve == 0) counts_.erase(count);
}

}  // namespace shirabe::service
