#pragma once

// Who is in which room, and who gets what. Members get events, as JSON:
//
//   {"type":"welcome","room":R,"name":N,"members":[...]}   the first one
//   {"type":"joined","name":N,"members":[...]}             also "left"; the members are all that are there now
//   {"type":"message","name":N,"text":T,"time":MS}         of everybody, the member itself too; ms since 1970
//   {"type":"status","text":T,"trouble":true}              how the server does; false: well again

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
using text = std::shared_ptr<const std::string>;                 // one event, for all who get it
using roster = std::map<std::string, std::vector<std::string>>;  // room -> names, sorted

// A member of a room of this process, in the frame of its session. Names are no identities: two members may bear one.
struct member {
  const std::string room, name;
  // What the member's writer has yet to send. The rooms close it when the member has left, or when it is full: then the
  // member is too slow, and gone. So a member that does not read costs no more than this, and nobody waits for it.
  ulexite::channel<text> outgoing{64};
  std::atomic<bool> too_slow{false};
};

// For the other processes: an event of a room, or, without a room, that the roster has changed.
struct news {
  std::string room;
  json event;
};

// One mutex for all of it: whoever holds it never waits for a member. No cancellation points: what is told is told to
// all of a room.
class rooms {
 public:
  // `outbox`: where the news go if there are other processes, else null. If it is full, they are lost.
  rooms(std::size_t room_members, ulexite::channel<news>* outbox) : room_members_(room_members), outbox_(outbox) {}

  // False: the room is full.
  bool join(member& who);
  // Tells the others, if the member is still there.
  void leave(member& who) noexcept;
  void say(const member& who, const std::string& what);

  // What other processes report. Their members are told to ours when they come and go.
  void tell(const std::string& room, const json& event);
  void set_elsewhere(const std::string& process, const roster& members);
  // Tells all members how the server does; in trouble, also those that come.
  void set_status(const std::string& notice, bool trouble);
  [[nodiscard]] roster members_here();

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
  ulexite::mutex mutex_;  // guards all below
  std::map<std::string, room> rooms_;
  std::string status_;  // empty without trouble
};

}  // namespace chat
