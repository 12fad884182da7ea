#pragma once

// The rooms, their members, and the delivery of events. Members get events as JSON:
//
//   {"type":"welcome","room":R,"name":N,"members":[...]}   the first one
//   {"type":"joined","name":N,"members":[...]}             also "left"; the members are all present ones
//   {"type":"message","name":N,"text":T,"time":MS}         of all members, also of the receiver itself; ms since 1970
//   {"type":"status","text":T,"trouble":true}              the server's state; false: the trouble has ended

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace chat {

using nlohmann::json;
using text = std::shared_ptr<const std::string>;                 // one event, for all its receivers
using roster = std::map<std::string, std::vector<std::string>>;  // room -> names, sorted

// A member of a room of this process, in the frame of its session. Names are not identities: two members may have one
// name.
struct member {
  const std::string room, name;
  // The events that the member's writer must still send. The rooms close it when the member has left, or when it is
  // full: then the member is too slow, and is removed. So a member that does not read costs only this memory, and no
  // fiber waits for it.
  ulexite::channel<text> outgoing{64};
  std::atomic<bool> too_slow{false};
};

// For the other processes: an event of a room, or, without a room, that the roster has changed.
struct news {
  std::string room;
  json event;
};

// One mutex guards all rooms; its holder never waits for a member. No function is a cancellation point, so an event
// goes to all members of a room.
class rooms {
 public:
  // `outbox` takes the news for other processes; null if there are none. If it is full, news are lost.
  rooms(std::size_t room_members, ulexite::channel<news>* outbox) : room_members_(room_members), outbox_(outbox) {}

  // Adds a member. False if the room is full.
  bool join(member& who);
  // Removes a member, if it is still there, and notifies the others.
  void leave(member& who) noexcept;
  // Sends a message of a member to all of its room. Does nothing if the member was removed.
  void say(const member& who, const std::string& what);

  // Delivers the reports of other processes. Our members are notified when other processes' members join and leave.
  void tell(const std::string& room, const json& event);
  void set_elsewhere(const std::string& process, const roster& members);
  // Sends all members the server's state; in trouble, also new members.
  void set_status(const std::string& notice, bool trouble);
  [[nodiscard]] roster members_here();
  // Whether there is no room.
  [[nodiscard]] bool empty();

 private:
  struct room {
    std::vector<member*> here;
    roster elsewhere;  // process -> names
  };
  struct access {
    explicit access(ulexite::mutex& guard) : lock(guard) {}
    ulexite::shield to_the_end;
    std::lock_guard<ulexite::mutex> lock;
  };
  using entry = std::map<std::string, room>::value_type;

  [[nodiscard]] static std::vector<std::string> names(const room& of);
  void deliver(entry& to, const json& event, const member* except = nullptr);
  void announce(const char* change, entry& in, const std::string& name, const member* except = nullptr);
  void publish(news item);

  const std::size_t room_members_;
  ulexite::channel<news>* const outbox_;
  ulexite::mutex mutex_;  // guards the members below
  std::map<std::string, room> rooms_;
  std::string status_;  // empty without trouble
};

}  // namespace chat
