/* The command line. */
#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wrong(const char *what, const char *value, const char *valid)
{
	fprintf(stderr, "usrsctp-peer: %s `%s`: %s\n", what, value, valid);
	exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value > most)
		wrong(name, text, "not a number in range");
	return value;
}

static double fraction(const char *name, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || value < 0)
		wrong(name, text, "not a number of seconds");
	return value;
}

/* Addresses with commas between them, with the given port. */
static int addresses(const char *text, struct sockaddr_storage *into)
{
	char *copy = strdup(text), *rest = copy, *word;
	int count = 0;

	while ((word = strsep(&rest, ",")) != NULL) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)&into[count];
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&into[count];

		if (count == MAX_ADDRESSES)
			wrong("addresses", text, "too many");
		memset(&into[count], 0, sizeof(into[count]));
		if (inet_pton(AF_INET, word, &v4->sin_addr) == 1)
			v4->sin_family = AF_INET;
		else if (inet_pton(AF_INET6, word, &v6->sin6_addr) == 1)
			v6->sin6_family = AF_INET6;
		else
			wrong("address", word, "not one of IPv4 or IPv6");
		count++;
	}
	free(copy);
	return count;
}

/* Chunk types with commas between them. */
static int chunk_types(const char *text, uint8_t *into)
{
	char *copy = strdup(text), *rest = copy, *word;
	int count = 0;

	while ((word = strsep(&rest, ",")) != NULL) {
		if (count == MAX_CHUNKS)
			wrong("chunk types", text, "too many");
		into[count++] = (uint8_t)number("--authenticate", word, 255);
	}
	free(copy);
	return count;
}

/* `identifier:secret`. */
static void secret(struct options *o, const char *text)
{
	const char *colon = strchr(text, ':');
	char id[8] = "";

	if (colon == NULL || colon - text >= (long)sizeof(id))
		wrong("--auth-key", text, "not identifier:secret");
	memcpy(id, text, (size_t)(colon - text));
	o->auth_key = (int)number("--auth-key", id, 65535);
	o->auth_secret = colon + 1;
}

static enum finish finish_of(const char *text)
{
	static const char *const names[] = { "shutdown", "abort", "wait", "vanish" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0)
			return (enum finish)i;
	wrong("--finish", text, "one of shutdown, abort, wait, vanish");
	return FINISH_WAIT;
}

enum {
	SERVER, ECHO, UNORDERED, NO_CHECK, INTERLEAVE, UDP_PORT, REMOTE_UDP_PORT, PORT, REMOTE_PORT, BIND,
	CONNECT, GIVE_UP, BYTES, SECONDS, EXPECT, MESSAGE, STREAMS, RECEIVE_BUFFER, SEND_BUFFER, WARMUP, FINISH,
	TIMEOUT, SYSCTL, RECONFIGURE, RESETS, AUTHENTICATE, AUTH_KEY, GAIN,
	ASK_PRIMARY,
};

static const struct option words[] = {
	{ "server", no_argument, NULL, SERVER },
	{ "echo", no_argument, NULL, ECHO },
	{ "unordered", no_argument, NULL, UNORDERED },
	{ "no-check", no_argument, NULL, NO_CHECK },
	{ "interleave", no_argument, NULL, INTERLEAVE },
	{ "udp-port", required_argument, NULL, UDP_PORT },
	{ "remote-udp-port", required_argument, NULL, REMOTE_UDP_PORT },
	{ "port", required_argument, NULL, PORT },
	{ "remote-port", required_argument, NULL, REMOTE_PORT },
	{ "bind", required_argument, NULL, BIND },
	{ "connect", required_argument, NULL, CONNECT },
	{ "give-up", required_argument, NULL, GIVE_UP },
	{ "bytes", required_argument, NULL, BYTES },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "expect", required_argument, NULL, EXPECT },
	{ "message", required_argument, NULL, MESSAGE },
	{ "streams", required_argument, NULL, STREAMS },
	{ "receive-buffer", required_argument, NULL, RECEIVE_BUFFER },
	{ "send-buffer", required_argument, NULL, SEND_BUFFER },
	{ "warmup", required_argument, NULL, WARMUP },
	{ "finish", required_argument, NULL, FINISH },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "sysctl", required_argument, NULL, SYSCTL },
	{ "reconfigure", no_argument, NULL, RECONFIGURE },
	{ "resets", required_argument, NULL, RESETS },
	{ "gain", required_argument, NULL, GAIN },
	{ "ask-primary", required_argument, NULL, ASK_PRIMARY },
	{ "authenticate", required_argument, NULL, AUTHENTICATE },
	{ "auth-key", required_argument, NULL, AUTH_KEY },
	{ NULL, 0, NULL, 0 },
};

static void take(struct options *o, int word, const char *text)
{
	switch (word) {
	case SERVER: o->server = true; break;
	case ECHO: o->echo = true; break;
	case UNORDERED: o->unordered = true; break;
	case NO_CHECK: o->check = false; break;
	case INTERLEAVE: o->interleave = true; break;
	case UDP_PORT: o->udp_port = number("--udp-port", text, 65535); break;
	case REMOTE_UDP_PORT: o->remote_udp_port = number("--remote-udp-port", text, 65535); break;
	case PORT: o->port = number("--port", text, 65535); break;
	case REMOTE_PORT: o->remote_port = number("--remote-port", text, 65535); break;
	case BIND: o->bind_count = addresses(text, o->bind); break;
	case CONNECT: o->connect_count = addresses(text, o->connect); break;
	case GIVE_UP: o->give_up_count = addresses(text, o->give_up); break;
	case GAIN: o->gain_count = addresses(text, o->gain); break;
	case ASK_PRIMARY: o->primary_count = addresses(text, o->primary); break;
	case BYTES: o->bytes = number("--bytes", text, UINT64_MAX); break;
	case SECONDS: o->seconds = fraction("--seconds", text); break;
	case EXPECT: o->expect = number("--expect", text, UINT64_MAX); break;
	case MESSAGE: o->message = number("--message", text, 1 << 20); break;
	case STREAMS: o->streams = number("--streams", text, 65535); break;
	case RECEIVE_BUFFER: o->receive_buffer = number("--receive-buffer", text, INT32_MAX); break;
	case SEND_BUFFER: o->send_buffer = number("--send-buffer", text, INT32_MAX); break;
	case WARMUP: o->warmup = fraction("--warmup", text); break;
	case FINISH: o->finish = finish_of(text); break;
	case TIMEOUT: o->timeout = number("--timeout", text, 3600); break;
	case RECONFIGURE: o->reconfigure = true; break;
	case RESETS: o->resets = number("--resets", text, 1000); break;
	case AUTHENTICATE: o->authenticate_count = chunk_types(text, o->authenticate); break;
	case AUTH_KEY: secret(o, text); break;
	case SYSCTL:
		if (!keep_sysctl(text))
			wrong("--sysctl", text, sysctl_names());
		break;
	default: exit(2);
	}
}

static void set_ports(struct sockaddr_storage *list, int count, uint16_t port)
{
	/* The port is at the same place in both families. */
	for (int i = 0; i < count; i++)
		((struct sockaddr_in *)&list[i])->sin_port = htons(port);
}

void parse_options(struct options *o, int argc, char **argv)
{
	int word;

	memset(o, 0, sizeof(*o));
	o->check = true;
	o->auth_key = -1;
	o->udp_port = o->remote_udp_port = 9899;
	o->port = o->remote_port = 9899;
	o->message = 1000;
	o->streams = 1;
	o->receive_buffer = o->send_buffer = 4 << 20;
	o->finish = FINISH_WAIT;
	o->timeout = 60;
	while ((word = getopt_long(argc, argv, "", words, NULL)) != -1)
		take(o, word, optarg);
	if (optind < argc)
		wrong("word", argv[optind], "options begin with --");
	if (!o->server && o->connect_count == 0)
		wrong("--connect", "", "an address, or else --server");
	if (o->message < 16)
		wrong("--message", "", "at least the 16 bytes of the header");
	set_ports(o->bind, o->bind_count, o->port);
	set_ports(o->connect, o->connect_count, o->remote_port);
	set_ports(o->give_up, o->give_up_count, o->port);
	set_ports(o->gain, o->gain_count, o->port);
	set_ports(o->primary, o->primary_count, o->port);
}
