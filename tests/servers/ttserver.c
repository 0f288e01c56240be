/* A stand-in for Tokyo Tyrant's ttserver, for tests only: part of its binary protocol and of its memcached text over the
 * real Tokyo Cabinet. It says what it is: `stat` names the product "tokyotyrant-test", by which its rows are labelled.
 *
 *   cc -O2 -o ttserver ttserver.c -ltokyocabinet -lpthread
 *   ttserver -host PATH -port 0 '*'      ttserver -host 127.0.0.1 -port 1978 -thnum 8 'x.tch#bnum=1000'
 *
 * Written from the protocol's description: https://dbmx.net/tokyotyrant/spex.html#protocol */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <tcadb.h>

#define LONGEST (256u << 20) /* of a key or value; more ends the connection, as it does there */
#define MOST (1u << 20)      /* keys of an mget */
#define LINE 65536           /* a memcached command line of many keys */

static TCADB *db;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
  int fd;
  size_t at, end;
  TCXSTR *out;
  char in[65536];
} Peer;

/* What was answered so far goes out before we wait for more. */
static bool send_out(Peer *peer) {
  const char *bytes = tcxstrptr(peer->out);
  size_t left = tcxstrsize(peer->out);
  while (left > 0) {
    ssize_t sent = send(peer->fd, bytes, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    left -= sent;
  }
  tcxstrclear(peer->out);
  return true;
}

static bool fill(Peer *peer) {
  if (peer->at < peer->end) return true;
  if (!send_out(peer)) return false;
  ssize_t got;
  do got = recv(peer->fd, peer->in, sizeof peer->in, 0);
  while (got < 0 && errno == EINTR);
  peer->at = 0;
  peer->end = got > 0 ? got : 0;
  return got > 0;
}

static bool take(Peer *peer, void *into, size_t size) {
  for (char *to = into; size > 0;) {
    if (!fill(peer)) return false;
    size_t part = peer->end - peer->at < size ? peer->end - peer->at : size;
    memcpy(to, peer->in + peer->at, part);
    peer->at += part;
    to += part;
    size -= part;
  }
  return true;
}

static bool take_number(Peer *peer, uint32_t *number) {
  if (!take(peer, number, 4)) return false;
  *number = ntohl(*number);
  return true;
}

/* Bytes of a length that was checked, to be freed. */
static char *take_bytes(Peer *peer, uint32_t size) {
  if (size > LONGEST) return NULL;
  char *bytes = malloc((size_t)size + 1);
  if (!bytes) return NULL;
  if (!take(peer, bytes, size)) {
    free(bytes);
    return NULL;
  }
  bytes[size] = 0;
  return bytes;
}

static void say_code(Peer *peer, bool good) {
  char code = good ? 0 : 1;
  tcxstrcat(peer->out, &code, 1);
}

static void say_number(Peer *peer, uint32_t number) {
  number = htonl(number);
  tcxstrcat(peer->out, &number, 4);
}

static void say_long(Peer *peer, uint64_t number) {
  say_code(peer, true);
  say_number(peer, number >> 32);
  say_number(peer, (uint32_t)number);
}

static bool do_put(Peer *peer, int command) {
  uint32_t ksiz, vsiz;
  if (!take_number(peer, &ksiz) || !take_number(peer, &vsiz)) return false;
  char *key = take_bytes(peer, ksiz), *value = key ? take_bytes(peer, vsiz) : NULL;
  if (value) {
    bool good = command == 0x11   ? tcadbputkeep(db, key, ksiz, value, vsiz)
                : command == 0x12 ? tcadbputcat(db, key, ksiz, value, vsiz)
                                  : tcadbput(db, key, ksiz, value, vsiz);
    if (command != 0x18) say_code(peer, good); /* putnr is not answered at all */
  }
  bool whole = value != NULL;
  free(key);
  free(value);
  return whole;
}

static bool do_with_key(Peer *peer, int command) {
  uint32_t ksiz, step = 0;
  if (!take_number(peer, &ksiz) || (command == 0x60 && !take_number(peer, &step))) return false;
  char *key = take_bytes(peer, ksiz);
  if (!key) return false;
  if (command == 0x20) say_code(peer, tcadbout(db, key, ksiz));
  if (command == 0x30) {
    int vsiz;
    char *value = tcadbget(db, key, ksiz, &vsiz);
    say_code(peer, value);
    if (value) {
      say_number(peer, vsiz);
      tcxstrcat(peer->out, value, vsiz);
    }
    free(value);
  }
  if (command == 0x60) {
    int sum = tcadbaddint(db, key, ksiz, (int32_t)step);
    say_code(peer, sum != INT_MIN);
    if (sum != INT_MIN) say_number(peer, sum);
  }
  free(key);
  return true;
}

static bool do_mget(Peer *peer) {
  uint32_t count, found = 0;
  if (!take_number(peer, &count) || count > MOST) return false;
  TCXSTR *records = tcxstrnew();
  bool whole = true;
  for (uint32_t index = 0; whole && index < count; index++) {
    uint32_t ksiz;
    char *key = take_number(peer, &ksiz) ? take_bytes(peer, ksiz) : NULL;
    int vsiz;
    char *value = key ? tcadbget(db, key, ksiz, &vsiz) : NULL;
    if (value) {
      uint32_t sizes[2] = {htonl(ksiz), htonl(vsiz)};
      tcxstrcat(records, sizes, 8);
      tcxstrcat(records, key, ksiz);
      tcxstrcat(records, value, vsiz);
      found++;
    }
    whole = key != NULL;
    free(key);
    free(value);
  }
  if (whole) {
    say_code(peer, true);
    say_number(peer, found);
    tcxstrcat(peer->out, tcxstrptr(records), tcxstrsize(records));
  }
  tcxstrdel(records);
  return whole;
}

static void do_stat(Peer *peer) {
  static const char *const kinds[] = {"void", "on-memory hash", "on-memory tree", "hash", "B+ tree", "fixed-length", "table"};
  int kind = tcadbomode(db);
  TCXSTR *text = tcxstrnew();
  tcxstrprintf(text, "version\t%s\nproduct\ttokyotyrant-test\npid\t%d\n", tcversion, (int)getpid());
  tcxstrprintf(text, "type\t%s\n", kind >= 0 && kind <= 6 ? kinds[kind] : "other");
  if (tcadbpath(db)) tcxstrprintf(text, "path\t%s\n", tcadbpath(db));
  tcxstrprintf(text, "rnum\t%llu\n", (unsigned long long)tcadbrnum(db));
  tcxstrprintf(text, "size\t%llu\nbigend\t%d\n", (unsigned long long)tcadbsize(db), htonl(1) == 1);
  say_code(peer, true);
  say_number(peer, tcxstrsize(text));
  tcxstrcat(peer->out, tcxstrptr(text), tcxstrsize(text));
  tcxstrdel(text);
}

static bool do_binary(Peer *peer) {
  unsigned char command;
  if (!take(peer, &command, 1)) return false;
  switch (command) {
    case 0x10: case 0x11: case 0x12: case 0x18: return do_put(peer, command);
    case 0x20: case 0x30: case 0x60: return do_with_key(peer, command);
    case 0x31: return do_mget(peer);
    case 0x70: say_code(peer, tcadbsync(db)); return true;
    case 0x72: say_code(peer, tcadbvanish(db)); return true;
    case 0x80: say_long(peer, tcadbrnum(db)); return true;
    case 0x81: say_long(peer, tcadbsize(db)); return true;
    case 0x88: do_stat(peer); return true;
    default: return false;
  }
}

static void do_incr(Peer *peer, const char *key, long long step) {
  pthread_mutex_lock(&adding);
  char *value = tcadbget2(db, key), sum[32];
  if (value) {
    step += atoll(value); /* what is no number counts as 0, as it does there */
    snprintf(sum, sizeof sum, "%lld", step < 0 ? 0 : step);
    tcadbput2(db, key, sum);
  }
  pthread_mutex_unlock(&adding);
  tcxstrprintf(peer->out, "%s\r\n", value ? sum : "NOT_FOUND");
  free(value);
}

static void do_get_text(Peer *peer, char *rest) {
  for (char *key; (key = strtok_r(NULL, " ", &rest));) {
    int vsiz;
    char *value = tcadbget(db, key, strlen(key), &vsiz);
    if (!value) continue;
    tcxstrprintf(peer->out, "VALUE %s 0 %d\r\n", key, vsiz);
    tcxstrcat(peer->out, value, vsiz);
    tcxstrcat(peer->out, "\r\n", 2);
    free(value);
  }
  tcxstrcat2(peer->out, "END\r\n");
}

/* memcached's text: the first byte of its line was taken already. */
static bool do_text(Peer *peer, char first) {
  size_t size = 1, most = LINE;
  char *line = malloc(most), *rest = NULL;
  for (line[0] = first; line[size - 1] != '\n'; size++) {
    if (size == most) line = realloc(line, most *= 2);
    if (most > LONGEST || !take(peer, line + size, 1)) return free(line), false;
  }
  line[size - 1 - (size > 1 && line[size - 2] == '\r')] = 0;
  char *command = strtok_r(line, " ", &rest);
  bool keep = command != NULL;
  if (!keep) {
  } else if (!strcmp(command, "get") || !strcmp(command, "gets")) {
    do_get_text(peer, rest);
  } else if (!strcmp(command, "set") || !strcmp(command, "add")) {
    char *key = strtok_r(NULL, " ", &rest), *flags = strtok_r(NULL, " ", &rest), *ttl = strtok_r(NULL, " ", &rest);
    char *length = strtok_r(NULL, " ", &rest), end[2], *value = NULL;
    keep = key && flags && ttl && length && (value = take_bytes(peer, strtoul(length, NULL, 10))) && take(peer, end, 2);
    if (keep) {
      int vsiz = atoi(length);
      bool is_set = command[0] == 's';
      bool good = is_set ? tcadbput(db, key, strlen(key), value, vsiz) : tcadbputkeep(db, key, strlen(key), value, vsiz);
      tcxstrcat2(peer->out, good ? "STORED\r\n" : is_set ? "SERVER_ERROR unexpected\r\n" : "NOT_STORED\r\n");
    }
    free(value);
  } else if (!strcmp(command, "delete") && rest && *rest) {
    char *key = strtok_r(NULL, " ", &rest);
    tcxstrcat2(peer->out, tcadbout2(db, key) ? "DELETED\r\n" : "NOT_FOUND\r\n");
  } else if (!strcmp(command, "incr")) {
    char *key = strtok_r(NULL, " ", &rest), *step = strtok_r(NULL, " ", &rest);
    if ((keep = key && step)) do_incr(peer, key, atoll(step));
  } else if (!strcmp(command, "version")) {
    tcxstrprintf(peer->out, "VERSION %s\r\n", tcversion);
  } else {
    keep = false;
  }
  free(line);
  return keep;
}

static void *serve(void *connection) {
  Peer *peer = connection;
  unsigned char first;
  while (take(peer, &first, 1) && (first == 0xC8 ? do_binary(peer) : do_text(peer, first))) {}
  send_out(peer);
  close(peer->fd);
  tcxstrdel(peer->out);
  free(peer);
  return NULL;
}

static void die(const char *what) {
  fprintf(stderr, "ttserver (for tests): %s: %s\n", what, strerror(errno));
  exit(1);
}

static int listen_at(const char *host, const char *port) {
  int fd, on = 1;
  if (!strcmp(port, "0")) {
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    if (strlen(host) >= sizeof path.sun_path) die("the path of the socket is too long");
    strcpy(path.sun_path, host);
    unlink(host);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&path, sizeof path) != 0) die(host);
  } else {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *found;
    if (getaddrinfo(host, port, &hints, &found) != 0) die(host);
    fd = socket(found->ai_family, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0) die("bind");
    freeaddrinfo(found);
  }
  if (listen(fd, 512) != 0) die("listen");
  return fd;
}

static void *accept_all(void *listener) {
  for (int fd, on = 1; (fd = accept(*(int *)listener, NULL, NULL)) >= 0 || errno == EINTR || errno == ECONNABORTED;) {
    if (fd < 0) continue;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Peer *peer = calloc(1, sizeof *peer);
    pthread_t thread;
    peer->fd = fd;
    peer->out = tcxstrnew();
    if (pthread_create(&thread, NULL, serve, peer) == 0) pthread_detach(thread);
  }
  return NULL;
}

int main(int count, char **words) {
  const char *host = "127.0.0.1", *port = "1978", *name = "*";
  for (int at = 1; at < count; at++) {
    bool more = at + 1 < count;
    if (!strcmp(words[at], "--version")) return printf("Tokyo Tyrant version %s (tokyotyrant-test)\n", tcversion), 0;
    if (!strcmp(words[at], "-host") && more) host = words[++at];
    else if (!strcmp(words[at], "-port") && more) port = words[++at];
    else if (!strcmp(words[at], "-thnum") && more) at++; /* a thread a connection, however many */
    else name = words[at];
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  db = tcadbnew();
  if (!tcadbopen(db, name)) die(name);
  int listener = listen_at(host, port), got;
  pthread_t thread;
  if (pthread_create(&thread, NULL, accept_all, &listener) != 0) die("a thread");
  sigwait(&ends, &got);
  tcadbclose(db);
  _exit(0);
}
