#include "session.h"
#include "pattern.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As long as the longest message. */
#define READ_SIZE (1u << 20)
#define PPID 1000

struct partial {
	uint8_t *bytes;
	size_t length, room;
};

static void fail(const char *what)
{
	fprintf(stderr, "usrsctp-peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

void session_prepare(struct session *s, const struct options *options)
{
	memset(s, 0, sizeof(*s));
	s->options = options;
	s->next = malloc(READ_SIZE);
	s->partials = calloc(65536, sizeof(*s->partials));
	s->expected = calloc(65536, sizeof(*s->expected));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
}

static void put(struct session *s, const uint8_t *bytes, size_t length, uint16_t stream)
{
	struct sctp_sndinfo info = { 0 };

	info.snd_sid = stream;
	info.snd_ppid = htonl(PPID);
	info.snd_flags = s->options->unordered ? SCTP_UNORDERED : 0;
	if (usrsctp_sendv(s->socket, bytes, length, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0) < 0) {
		event("send failed: %s", strerror(errno));
		pthread_mutex_lock(&s->lock);
		s->over = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		return;
	}
	s->report.sent_messages++;
	s->report.sent_bytes += length;
}

/* A whole message. */
static void take(struct session *s, const uint8_t *bytes, size_t length, uint16_t stream)
{
	struct report *r = &s->report;
	int64_t number = pattern_number(bytes, length, stream, s->options->check);
	double now = now_s();

	if (number < 0 || (!s->options->unordered && number != s->expected[stream])) {
		if (r->wrong++ == 0)
			event("wrong: stream %u length %zu number %ld, expected %u", stream, length, (long)number,
			      s->expected[stream]);
	}
	s->expected[stream]++;
	if (r->received_messages++ == 0)
		r->first_at = r->warm_at = now;
	if (now >= r->first_at + s->options->warmup) {
		if (r->measured_bytes == 0)
			r->warm_at = now;
		r->measured_bytes += length;
	}
	r->last_at = now;
	if (s->options->echo)
		put(s, bytes, length, stream);
	pthread_mutex_lock(&s->lock);
	r->received_bytes += length;
	if (s->options->expect != 0 && r->received_bytes >= s->options->expect)
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void keep(struct partial *p, const uint8_t *bytes, size_t length)
{
	if (p->length + length > p->room) {
		p->room = 2 * (p->length + length);
		p->bytes = realloc(p->bytes, p->room);
	}
	memcpy(p->bytes + p->length, bytes, length);
	p->length += length;
}

static void take_part(struct session *s, size_t length, uint16_t stream, bool last)
{
	struct partial *p = &s->partials[stream];

	if (last && p->length == 0) {
		take(s, s->next, length, stream);
		return;
	}
	keep(p, s->next, length);
	if (last) {
		size_t whole = p->length;

		p->length = 0;
		take(s, p->bytes, whole, stream);
	}
}

static const char *address_text(const struct sockaddr_storage *address, char *text, size_t room)
{
	const void *bytes = address->ss_family == AF_INET6
		? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
		: (const void *)&((const struct sockaddr_in *)address)->sin_addr;

	return inet_ntop(address->ss_family, bytes, text, room) ? text : "?";
}

/* A new association took the place of the old: both begin to count anew. */
static void restarted(struct session *s)
{
	s->report.restarts++;
	memset(s->expected, 0, 65536 * sizeof(*s->expected));
	for (int i = 0; i < 65536; i++)
		s->partials[i].length = 0;
}

static void association_changed(struct session *s, const struct sctp_assoc_change *change)
{
	static const char *const names[] = { "?", "up", "lost", "restart", "shutdown", "cannot start" };
	const char *name = change->sac_state <= 5 ? names[change->sac_state] : "?";

	event("%s: %u out, %u in, error %u", name, change->sac_outbound_streams, change->sac_inbound_streams,
	      change->sac_error);
	if (change->sac_state == SCTP_COMM_UP)
		s->outbound = change->sac_outbound_streams;
	if (change->sac_state == SCTP_RESTART)
		restarted(s);
	else if (change->sac_state != SCTP_COMM_UP && s->report.ended[0] == '\0')
		snprintf(s->report.ended, sizeof(s->report.ended), "%s", name);
}

/* The other end has reset its streams, or a request of ours has ended. */
static void streams_reset(struct session *s, const struct sctp_stream_reset_event *reset)
{
	size_t count = (reset->strreset_length - sizeof(*reset)) / sizeof(uint16_t);
	bool failed = reset->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED);

	event("streams reset: flags %u, %zu listed", reset->strreset_flags, count);
	if (failed)
		s->report.wrong++;
	if (!failed && (reset->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN)) {
		if (count == 0)
			memset(s->expected, 0, 65536 * sizeof(*s->expected));
		for (size_t i = 0; i < count; i++)
			s->expected[reset->strreset_stream_list[i]] = 0;
	}
	if (reset->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN) {
		pthread_mutex_lock(&s->lock);
		s->own_resets += count > 0 ? count : s->outbound;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
}

static void take_notification(struct session *s, const union sctp_notification *n)
{
	static const char *const states[] = { "?", "available", "unreachable", "removed", "added", "primary", "confirmed" };
	char text[INET6_ADDRSTRLEN];

	switch (n->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		association_changed(s, &n->sn_assoc_change);
		break;
	case SCTP_PEER_ADDR_CHANGE:
		event("path %s %s", address_text(&n->sn_paddr_change.spc_aaddr, text, sizeof(text)),
		      n->sn_paddr_change.spc_state <= 6 ? states[n->sn_paddr_change.spc_state] : "?");
		break;
	case SCTP_REMOTE_ERROR:
		event("remote error %u", ntohs(n->sn_remote_error.sre_error));
		break;
	case SCTP_SHUTDOWN_EVENT:
		event("peer shuts down");
		break;
	case SCTP_STREAM_RESET_EVENT:
		streams_reset(s, &n->sn_strreset_event);
		break;
	case SCTP_ASSOC_RESET_EVENT:
		event("association reset: flags %u", n->sn_assocreset_event.assocreset_flags);
		memset(s->expected, 0, 65536 * sizeof(*s->expected));
		break;
	case SCTP_SENDER_DRY_EVENT:
		pthread_mutex_lock(&s->lock);
		s->dry = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		break;
	default:
		event("notification %u", n->sn_header.sn_type);
	}
}

void *session_read(void *argument)
{
	struct session *s = argument;

	for (;;) {
		struct sctp_rcvinfo info = { 0 };
		socklen_t address_length = 0, info_length = sizeof(info);
		unsigned type = 0;
		int flags = 0;
		ssize_t got = usrsctp_recvv(s->socket, s->next, READ_SIZE, NULL, &address_length, &info, &info_length, &type,
		                            &flags);

		if (got <= 0)
			break;
		if (flags & MSG_NOTIFICATION)
			take_notification(s, (const union sctp_notification *)s->next);
		else
			take_part(s, (size_t)got, info.rcv_sid, (flags & MSG_EOR) != 0);
	}
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The stack tells when the peer has all; at once, if it has. */
static void wait_until_dry(struct session *s)
{
	struct sctp_event subscription = { 0 };

	pthread_mutex_lock(&s->lock);
	s->dry = false;
	pthread_mutex_unlock(&s->lock);
	subscription.se_assoc_id = SCTP_FUTURE_ASSOC;
	subscription.se_type = SCTP_SENDER_DRY_EVENT;
	subscription.se_on = 1;
	if (usrsctp_setsockopt(s->socket, IPPROTO_SCTP, SCTP_EVENT, &subscription, sizeof(subscription)) < 0)
		fail("SCTP_SENDER_DRY_EVENT");
	pthread_mutex_lock(&s->lock);
	while (!s->dry && !s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* Resets all outgoing streams, and waits until that is done. If messages are queued, the stack sometimes stops sending them
 * for good once it is asked for a reset. */
static void reset_streams(struct session *s, unsigned round)
{
	struct sctp_reset_streams request = { 0 };

	wait_until_dry(s);
	request.srs_assoc_id = SCTP_ALL_ASSOC;
	request.srs_flags = SCTP_STREAM_RESET_OUTGOING;
	if (usrsctp_setsockopt(s->socket, IPPROTO_SCTP, SCTP_RESET_STREAMS, &request, sizeof(request)) < 0)
		fail("SCTP_RESET_STREAMS");
	pthread_mutex_lock(&s->lock);
	/* The stack resets the streams one by one, as their data is acknowledged. */
	while (s->own_resets < (round + 1) * s->outbound && !s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void write_all(struct session *s)
{
	const struct options *o = s->options;
	uint32_t *numbers = calloc(o->streams, sizeof(*numbers));
	uint8_t *message = malloc(o->message);
	double end = now_s() + o->seconds;
	uint64_t sent = 0;

	for (uint16_t stream = 0; !s->over; stream = (uint16_t)((stream + 1) % o->streams)) {
		if (o->seconds > 0 ? now_s() >= end : sent >= o->bytes)
			break;
		pattern_write(message, o->message, stream, numbers[stream]++);
		put(s, message, o->message, stream);
		sent += o->message;
	}
	free(message);
	free(numbers);
}

void session_write(struct session *s)
{
	write_all(s);
	for (unsigned round = 0; round < s->options->resets; round++) {
		reset_streams(s, round);
		write_all(s);
	}
}

static void wait_until_over(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	while (!s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* The ABORT is on the wire when the call returns. */
static void abort_association(struct session *s)
{
	static const char reason[] = "as asked";
	struct sctp_sndinfo info = { 0 };

	info.snd_flags = SCTP_ABORT;
	/* Before the stack tells us ourselves that it is lost. */
	snprintf(s->report.ended, sizeof(s->report.ended), "aborted");
	if (usrsctp_sendv(s->socket, reason, sizeof(reason), NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0) < 0)
		fail("abort");
}

/* What the other end may need to answer one ASCONF before the next. */
#define PAUSE_US 700000

static void gain_addresses(struct session *s)
{
	const struct options *o = s->options;
	char text[INET6_ADDRSTRLEN];

	if (o->gain_count > 0)
		wait_until_dry(s);
	for (int i = 0; i < o->gain_count; i++) {
		struct sockaddr_storage address = o->gain[i];

		usleep(PAUSE_US);
		if (usrsctp_bindx(s->socket, (struct sockaddr *)&address, 1, SCTP_BINDX_ADD_ADDR) < 0)
			fail("gain");
		event("gained %s", address_text(&address, text, sizeof(text)));
	}
}

static void ask_for_primary(struct session *s)
{
	for (int i = 0; i < s->options->primary_count; i++) {
		struct sctp_setpeerprim request = { 0 };

		usleep(PAUSE_US);
		request.sspp_addr = s->options->primary[i];
		if (usrsctp_setsockopt(s->socket, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &request, sizeof(request)) < 0)
			fail("SCTP_SET_PEER_PRIMARY_ADDR");
	}
}

/* Without ASCONF the peer is not told. */
static void give_up_addresses(struct session *s)
{
	const struct options *o = s->options;
	char text[INET6_ADDRSTRLEN];

	if (o->give_up_count > 0)
		wait_until_dry(s);
	for (int i = 0; i < o->give_up_count; i++) {
		struct sockaddr_storage address = o->give_up[i];

		if (usrsctp_bindx(s->socket, (struct sockaddr *)&address, 1, SCTP_BINDX_REM_ADDR) < 0)
			fail("give up");
		event("gave up %s", address_text(&address, text, sizeof(text)));
	}
}

void session_finish(struct session *s)
{
	const struct options *o = s->options;

	gain_addresses(s);
	ask_for_primary(s);
	give_up_addresses(s);

	pthread_mutex_lock(&s->lock);
	while (s->report.received_bytes < o->expect && !s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	switch (o->finish) {
	case FINISH_SHUTDOWN:
		usrsctp_shutdown(s->socket, SHUT_WR);
		break;
	case FINISH_ABORT:
		abort_association(s);
		return;
	case FINISH_VANISH:
		wait_until_dry(s);
		snprintf(s->report.ended, sizeof(s->report.ended), "vanished");
		return;
	case FINISH_WAIT:
		break;
	}
	wait_until_over(s);
}
