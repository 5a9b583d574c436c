#include "sandbox/egress/proxy.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "base/unique_fd.h"
#include "sandbox/egress/lookups.h"

namespace llm_sandbox {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using egress::Destination;
using egress::IpAddress;
using Clock = std::chrono::steady_clock;
using Local = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;
using namespace std::chrono_literals;

constexpr uint32_t kMaxHeadBytes = 16 << 10;
constexpr size_t kFlowBytes = 64 << 10;
constexpr size_t kMaxRefused = 32;
constexpr size_t kMaxReasonBytes = 200;
constexpr auto kAttemptTime = 5s;  ///< for one address while there are others
constexpr auto kAnswerTime = 5s;   ///< for a client to take an answer of ours
constexpr auto kAcceptAgainAfter = 100ms;

/// What was refused; read by other threads.
class RefusedLog {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (list_.size() < kMaxRefused && std::find(list_.begin(), list_.end(), what) == list_.end()) list_.push_back(what);
  }
  std::vector<std::string> list() const {
    const std::lock_guard lock(mutex_);
    return list_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> list_;
};

/// What the connections of a proxy have in common. Used on its thread only, but for `refused`.
struct Common {
  explicit Common(EgressPolicy given) : policy(std::move(given)), bytes_left(policy.limits.bytes) {}

  /// False, and noted, once the proxy has carried as much as it may.
  bool spend(size_t bytes) {
    if (bytes > bytes_left) {
      refused.add("more than " + format_bytes(policy.limits.bytes) + " were to be transferred");
      bytes_left = 0;
      return false;
    }
    bytes_left -= bytes;
    return true;
  }

  const EgressPolicy policy;
  const egress::OwnNetworks own_networks = egress::OwnNetworks::look();
  uint64_t bytes_left;
  size_t connections = 0;
  std::function<void()> on_connection_closed;
  RefusedLog refused;
  egress::Lookups* lookups = nullptr;
};

std::string one_line(std::string_view sentence) {
  std::string line = printable(sentence.substr(0, kMaxReasonBytes));
  while (line.ends_with('.')) line.pop_back();
  return line;
}

Tcp::endpoint endpoint_of(const IpAddress& address, uint16_t port) {
  if (address.v6) return {asio::ip::address_v6(address.bytes), port};
  asio::ip::address_v4::bytes_type bytes;
  std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
  return {asio::ip::address_v4(bytes), port};
}

/// One client's connection: one request, its answer, and the end. Alive while its timer is armed, that is until
/// close().
class Connection : public std::enable_shared_from_this<Connection> {
  /// A handler that keeps this connection alive and does nothing once it is closed.
  template <typename Handler>
  auto on(Handler handler) {
    return [self = shared_from_this(), handler = std::move(handler)](auto... arguments) mutable {
      if (self->stage_ != Stage::kClosed) handler(arguments...);
    };
  }

 public:
  Connection(Common& common, asio::io_context& io, Local::socket client)
      : common_(common), client_(std::move(client)), server_(io), timer_(io), end_(Clock::now() + limits().total) {
    ++common_.connections;
    head_.header_limit(kMaxHeadBytes);
    head_.body_limit(limits().bytes);
    upstream_head_.header_limit(kMaxHeadBytes);
    upstream_head_.skip(true);
  }
  ~Connection() {
    --common_.connections;
    if (common_.on_connection_closed) common_.on_connection_closed();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    enter(Stage::kHead, limits().head);
    http::async_read_header(client_, buffer_, head_, on([this](error_code error, size_t) { take_head(error); }));
  }

 private:
  enum class Stage { kHead, kReach, kFlow, kAnswer, kClosed };
  struct Flow {
    std::array<char, kFlowBytes> bytes;
    bool ended = false;
  };

  const EgressLimits& limits() const { return common_.policy.limits; }

  // --- time ---

  void enter(Stage stage, Clock::duration time) {
    stage_ = stage;
    limit_ = Clock::now() + time;
    watch();
  }
  void touch() { limit_ = Clock::now() + limits().idle; }
  void watch() {
    timer_.expires_at(std::min(limit_, end_));
    timer_.async_wait(on([this](error_code error) {
      if (!error) look_at_clock();
    }));
  }
  void look_at_clock() {
    if (Clock::now() < std::min(limit_, end_)) return watch();  // touched meanwhile
    switch (stage_) {
      case Stage::kHead:
        return answer(408, "The request's head did not arrive in time.");
      case Stage::kReach:
        return attempt_timed_out();
      default:
        return close();
    }
  }

  // --- what the client wants ---

  void take_head(error_code error) {
    if (stage_ != Stage::kHead) return;
    if (error == http::error::end_of_stream || error == http::error::partial_message) return close();
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return answer(400, "The request's head is larger than " + format_bytes(kMaxHeadBytes) + ".");
    if (error && error.category() == make_error_code(http::error::bad_method).category())
      return answer(400, "This is no HTTP request: " + error.message() + ".");
    if (error) return close();
    auto understood = understand();
    if (!understood) return answer(400, understood.error().sentence);
    if (common_.bytes_left == 0) return refuse("No more than " + format_bytes(limits().bytes) + " may be transferred");
    if (const auto objection = common_.policy.objection(destination_); !objection.empty()) return refuse(objection);
    upstream_ = common_.policy.upstream_for(destination_, tunnel_);
    hop_ = upstream_ != nullptr ? upstream_->destination : destination_;
    if (upstream_ != nullptr) return judge_beyond_upstream();
    look_up();
  }

  Result<void> understand() {
    const auto& request = head_.get();
    const std::string target(request.target());
    tunnel_ = request.method() == http::verb::connect;
    if (tunnel_)
      return egress::parse_connect_target(target).map([this](Destination to) { destination_ = std::move(to); });
    return egress::parse_http_url(target).map([this](egress::HttpTarget to) {
      destination_ = std::move(to.destination);
      path_ = std::move(to.path);
    });
  }

  // --- the way there ---

  /// The user's own proxy looks the name up for itself, but a name that leads to a private address from here is not
  /// passed on to it. One that cannot be looked up here is: there may be no other way than that proxy.
  void judge_beyond_upstream() {
    enter(Stage::kReach, limits().reach);
    const auto judge = [](Connection& self, const std::vector<IpAddress>& found) {
      for (const auto& address : found)
        if (const auto why = self.common_.policy.objection(self.destination_, address, self.common_.own_networks);
            !why.empty())
          return self.refuse(why);
      self.look_up();
    };
    if (const auto address = egress::address_in(destination_.host)) return judge(*this, {*address});
    auto started = common_.lookups->start(destination_.host, [weak = weak_from_this(), judge](const auto& found) {
      const auto self = weak.lock();
      if (!self || self->stage_ != Stage::kReach) return;
      judge(*self, found ? *found : std::vector<IpAddress>());
    });
    if (!started) answer(502, started.error().sentence);
  }

  void look_up() {
    enter(Stage::kReach, limits().reach);
    reach_end_ = limit_;
    if (const auto address = egress::address_in(hop_.host)) return take_addresses({*address});
    // Weak: a look-up may take longer than anybody waits for it.
    auto started = common_.lookups->start(hop_.host, [weak = weak_from_this()](const auto& found) {
      const auto self = weak.lock();
      if (!self || self->stage_ != Stage::kReach) return;
      if (!found) return self->answer(502, found.error().sentence);
      self->take_addresses(*found);
    });
    if (!started) answer(502, started.error().sentence);
  }

  void take_addresses(const std::vector<IpAddress>& found) {
    std::string objection;
    for (const auto& address : found) {
      const auto why =
          upstream_ != nullptr ? "" : common_.policy.objection(destination_, address, common_.own_networks);
      if (why.empty())
        addresses_.push_back(address);
      else if (objection.empty())
        objection = why;
    }
    if (addresses_.empty()) return refuse(objection);
    connect_next("it has no address");
  }

  void connect_next(const std::string& why) {
    if (next_address_ == addresses_.size()) return answer(502, hop_name() + " cannot be reached: " + why + ".");
    const IpAddress& address = addresses_[next_address_++];
    const bool last = next_address_ == addresses_.size();
    limit_ = last ? reach_end_ : std::min(reach_end_, Clock::now() + kAttemptTime);
    watch();
    if (const auto error = open_server(address.v6)) return connect_next(error.message());
    server_.async_connect(
        endpoint_of(address, hop_.port), on([this](error_code error) {
          if (stage_ != Stage::kReach) return;
          if (error) return connect_next(error == asio::error::operation_aborted ? "no answer" : error.message());
          take_connected();
        }));
  }

  /// Asio makes sockets that programs started meanwhile would inherit.
  error_code open_server(bool v6) {
    error_code error;
    server_.close(error);
    const auto protocol = v6 ? Tcp::v6() : Tcp::v4();
    const int fd = socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return {errno, boost::system::system_category()};
    server_.assign(protocol, fd, error);
    if (error) ::close(fd);
    return error;
  }

  void attempt_timed_out() {
    if (Clock::now() >= reach_end_ || !server_.is_open())
      return answer(504, hop_name() + " could not be reached in time.");
    error_code ignored;
    server_.close(ignored);  // its handler goes on with the next address
  }

  std::string hop_name() const { return (upstream_ != nullptr ? "The user's own proxy " : "The host ") + hop_.text(); }

  void take_connected() {
    error_code ignored;
    server_.set_option(Tcp::no_delay(true), ignored);
    if (tunnel_ && upstream_ != nullptr) return ask_upstream();
    enter(Stage::kFlow, limits().idle);
    if (tunnel_) return begin_tunnel();
    send_request();
  }

  // --- CONNECT ---

  void ask_upstream() {
    const std::string to = destination_.text();
    out_ = "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n";
    if (!upstream_->authorization.empty()) out_ += "Proxy-Authorization: " + upstream_->authorization + "\r\n";
    out_ += "\r\n";
    limit_ = reach_end_;
    watch();
    asio::async_write(server_, asio::buffer(out_), on([this](error_code error, size_t) {
                        if (stage_ != Stage::kReach) return;
                        if (error) return answer(502, hop_name() + " ended the connection: " + error.message() + ".");
                        hear_upstream();
                      }));
  }

  void hear_upstream() {
    http::async_read_header(server_, upstream_buffer_, upstream_head_, on([this](error_code error, size_t) {
                              if (stage_ != Stage::kReach) return;
                              if (error)
                                return answer(502, hop_name() + " gave no valid answer: " + error.message() + ".");
                              const auto& response = upstream_head_.get();
                              if (http::to_status_class(response.result()) != http::status_class::successful)
                                return answer(502, hop_name() + " answered " + std::to_string(response.result_int()) +
                                                       " " + one_line(std::string(response.reason())) + " for " +
                                                       destination_.text() + ".");
                              enter(Stage::kFlow, limits().idle);
                              begin_tunnel();
                            }));
  }

  void begin_tunnel() {
    out_ = "HTTP/1.1 200 Connection established\r\n\r\n";
    const std::array<asio::const_buffer, 2> to_client{asio::buffer(out_), upstream_buffer_.data()};
    asio::async_write(client_, to_client, on([this](error_code error, size_t) {
                        if (error) return close();
                        pump(server_, client_, down_);
                      }));
    if (!common_.spend(buffer_.size())) return close();
    asio::async_write(server_, buffer_.data(), on([this](error_code error, size_t) {
                        if (error) return end(up_);
                        pump(client_, server_, up_);
                      }));
  }

  // --- requests for http:// URLs ---

  void send_request() {
    rewrite_head();
    serializer_.emplace(head_.get());
    http::async_write_header(server_, *serializer_, on([this](error_code error, size_t) {
                               if (error)
                                 return answer(502, hop_name() + " ended the connection: " + error.message() + ".");
                               pump(server_, client_, down_);
                               pump_body();
                             }));
  }

  /// What is meant for this proxy alone goes no further, and the connection ends with the answer.
  void rewrite_head() {
    auto& request = head_.get();
    const bool usual_port = destination_.port == 80;
    const std::string whole = destination_.text();
    const std::string authority = usual_port ? whole.substr(0, whole.rfind(':')) : whole;
    request.target(upstream_ != nullptr ? "http://" + authority + path_ : path_);

    std::vector<std::string> hop_by_hop{
        "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "TE", "Upgrade"};
    const auto [begin, end] = request.equal_range(http::field::connection);
    for (auto each = begin; each != end; ++each)
      for (const auto token : http::token_list(each->value())) hop_by_hop.emplace_back(token.data(), token.size());
    for (const auto& name : hop_by_hop) {
      const auto field = http::string_to_field(name);
      if (field != http::field::content_length && field != http::field::transfer_encoding) request.erase(name);
    }
    request.set(http::field::host, authority);
    request.set(http::field::connection, "close");
    if (upstream_ != nullptr && !upstream_->authorization.empty())
      request.set(http::field::proxy_authorization, upstream_->authorization);
  }

  /// Parsed and put together again, not copied: what follows the body must not become a request to the other side, of
  /// which an upstream would not know that nobody has judged it.
  void pump_body() {
    if (head_.is_done()) return end(up_);
    auto& body = head_.get().body();
    body.data = up_.bytes.data();
    body.size = up_.bytes.size();
    http::async_read_some(client_, buffer_, head_, on([this](error_code error, size_t) {
                            if (error && error != http::error::need_buffer) return close();
                            send_body();
                          }));
  }

  void send_body() {
    auto& body = head_.get().body();
    body.size = up_.bytes.size() - body.size;
    body.data = body.size == 0 ? nullptr : up_.bytes.data();
    body.more = !head_.is_done();
    if (!common_.spend(body.size)) return close();
    if (body.size == 0 && body.more) return pump_body();
    touch();
    http::async_write(server_, *serializer_, on([this](error_code error, size_t) {
                        if (error && error != http::error::need_buffer) return end(up_);
                        touch();
                        pump_body();
                      }));
  }

  // --- bytes either way ---

  template <typename From, typename To>
  void pump(From& from, To& to, Flow& flow) {
    from.async_read_some(asio::buffer(flow.bytes), on([this, &from, &to, &flow](error_code error, size_t count) {
                           if (error == asio::error::eof) {
                             error_code ignored;
                             to.shutdown(To::shutdown_send, ignored);
                             return end(flow);
                           }
                           if (error || !common_.spend(count)) return close();
                           touch();
                           pass_on(from, to, flow, count);
                         }));
  }

  template <typename From, typename To>
  void pass_on(From& from, To& to, Flow& flow, size_t count) {
    asio::async_write(to, asio::buffer(flow.bytes, count), on([this, &from, &to, &flow](error_code error, size_t) {
                        if (error) return end(flow);
                        touch();
                        pump(from, to, flow);
                      }));
  }

  /// A server may refuse a body that it has not read to the end, so its answer is still passed on. A client that takes
  /// no answer, or has it all, wants nothing more, unless a tunnel is still open the other way.
  void end(Flow& flow) {
    flow.ended = true;
    const bool answered = &flow == &down_ && !tunnel_;
    if (answered || (up_.ended && down_.ended)) close();
  }

  // --- the end ---

  void refuse(const std::string& what) {
    common_.refused.add(what);
    answer(403, what + ".",
           "Packages are installed from the public internet and from the hosts that your package manager's settings "
           "name.");
  }

  /// The sentence stands in the status line, too: it is all that most clients show.
  void answer(unsigned status, const std::string& sentence, const std::string& hint = {}) {
    enter(Stage::kAnswer, kAnswerTime);
    error_code ignored;
    server_.close(ignored);
    const std::string body = sentence + (hint.empty() ? "" : " " + hint) + "\n";
    out_ = "HTTP/1.1 " + std::to_string(status) + " " + one_line(sentence) +
           "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\nConnection: close\r\n\r\n";
    if (head_.get().method() != http::verb::head) out_ += body;
    asio::async_write(client_, asio::buffer(out_), on([this](error_code, size_t) { close(); }));
  }

  void close() {
    stage_ = Stage::kClosed;
    error_code ignored;
    timer_.cancel(ignored);
    client_.close(ignored);
    server_.close(ignored);
  }

  Common& common_;
  Local::socket client_;
  Tcp::socket server_;
  asio::steady_timer timer_;
  Stage stage_ = Stage::kHead;
  Clock::time_point limit_;
  Clock::time_point reach_end_;
  const Clock::time_point end_;

  boost::beast::flat_buffer buffer_{kMaxHeadBytes + kFlowBytes};
  http::request_parser<http::buffer_body> head_;
  std::optional<http::request_serializer<http::buffer_body>> serializer_;
  bool tunnel_ = false;
  Destination destination_;
  std::string path_;

  const UpstreamProxy* upstream_ = nullptr;
  Destination hop_;  ///< where to connect to: the upstream or the destination itself
  std::vector<IpAddress> addresses_;
  size_t next_address_ = 0;
  boost::beast::flat_buffer upstream_buffer_{kMaxHeadBytes + kFlowBytes};
  http::response_parser<http::empty_body> upstream_head_;

  std::string out_;
  Flow up_;
  Flow down_;
};

/// Only the owner of the folder may connect: the server itself or, where it is root, whom it starts sandboxes as.
Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kInvalidArgument, "The path " + path + " is too long for a socket.");
  std::memcpy(address.sun_path, path.data(), path.size());
  const std::string what = "Cannot make the socket " + path;
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(what, errno);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return fail_errno(what, errno);
  const auto given_up = [&](int error_number) {
    unlink(path.c_str());
    return fail_errno(what, error_number);
  };
  struct stat folder {};
  const std::string folder_path = path.substr(0, path.rfind('/') + 1);
  if (stat(folder_path.empty() ? "." : folder_path.c_str(), &folder) != 0) return given_up(errno);
  if (chmod(path.c_str(), 0600) != 0) return given_up(errno);
  if (geteuid() == 0 && lchown(path.c_str(), folder.st_uid, folder.st_gid) != 0) return given_up(errno);
  if (listen(fd.get(), SOMAXCONN) != 0) return given_up(errno);
  return fd;
}

}  // namespace

class EgressProxy::Server {
 public:
  Server(EgressPolicy policy, std::string path, UniqueFd listener)
      : path_(std::move(path)),
        common_(std::move(policy)),
        acceptor_(io_, Local(), listener.release()),
        accept_again_(io_),
        lookups_(common_.policy.resolve ? common_.policy.resolve : egress::resolve_by_system,
                 [this](std::function<void()> task) { asio::post(io_, std::move(task)); }) {
    common_.lookups = &lookups_;
    common_.on_connection_closed = [this] { accept(); };
    accept();
    start_thread();
  }

  ~Server() {
    io_.stop();
    thread_.join();
    common_.on_connection_closed = nullptr;
    unlink(path_.c_str());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::vector<std::string> refused() const { return common_.refused.list(); }

 private:
  /// Signals are for the server's own threads.
  void start_thread() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto restore = [&] { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      restore();
      unlink(path_.c_str());
      throw;
    }
    restore();
  }

  /// What a handler throws (no memory, say) costs the connection that it belongs to.
  void run() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  void accept() {
    if (accepting_ || common_.connections >= common_.policy.limits.connections) return;
    accepting_ = true;
    acceptor_.async_wait(Local::acceptor::wait_read, [this](error_code error) {
      accepting_ = false;
      if (error) return;
      take_connection();
    });
  }

  void take_connection() {
    const int fd = accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      std::make_shared<Connection>(common_, io_, Local::socket(io_, Local(), fd))->start();
      return accept();
    }
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return accept();
    // No descriptors or no memory: some may be given back.
    accept_again_.expires_after(kAcceptAgainAfter);
    accept_again_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  const std::string path_;
  Common common_;
  bool accepting_ = false;
  asio::io_context io_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  Local::acceptor acceptor_;
  asio::steady_timer accept_again_;
  egress::Lookups lookups_;
  std::thread thread_;
};

EgressProxy::EgressProxy(std::unique_ptr<Server> server) : server_(std::move(server)) {}
EgressProxy::~EgressProxy() = default;

Result<std::unique_ptr<EgressProxy>> EgressProxy::start(EgressPolicy policy, const std::string& socket_path) {
  auto listener = listen_at(socket_path);
  if (!listener) return fail(std::move(listener.error()));
  try {
    return std::unique_ptr<EgressProxy>(
        new EgressProxy(std::make_unique<Server>(std::move(policy), socket_path, std::move(*listener))));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kIo,
                std::string("The proxy for installing packages cannot be started: ") + error.what() + ".");
  }
}

std::vector<std::string> EgressProxy::refused() const { return server_->refused(); }

}  // namespace llm_sandbox
