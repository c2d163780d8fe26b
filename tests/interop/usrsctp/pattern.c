#include "pattern.h"

#include <arpa/inet.h>
#include <string.h>

#define MAGIC 0x52574c4bu
#define OFFSETS 65521u /* prime, so that neighbours never share an offset */
#define LONGEST (1u << 20)
#define TABLE (OFFSETS + LONGEST)

static uint8_t table[TABLE + 8];

void pattern_prepare(void)
{
	uint64_t state = 0x9e3779b97f4a7c15u;

	/* Marsaglia's xorshift, little-endian. */
	for (size_t i = 0; i < TABLE; i += 8) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		for (int byte = 0; byte < 8; byte++)
			table[i + byte] = (uint8_t)(state >> (8 * byte));
	}
}

static const uint8_t *body(uint16_t stream, uint32_t number)
{
	return table + ((uint64_t)stream * 7919u + (uint64_t)number * 104729u) % OFFSETS;
}

static void header(uint8_t *into, uint32_t length, uint16_t stream, uint32_t number)
{
	uint32_t words[4] = { htonl(MAGIC), htonl((uint32_t)stream << 16), htonl(number), htonl(length) };

	memcpy(into, words, HEADER);
}

void pattern_write(uint8_t *message, uint32_t length, uint16_t stream, uint32_t number)
{
	header(message, length, stream, number);
	memcpy(message + HEADER, body(stream, number), length - HEADER);
}

int64_t pattern_number(const uint8_t *message, size_t length, uint16_t stream, bool whole_body)
{
	uint8_t expected[HEADER];
	uint32_t number;

	if (length < HEADER || length > LONGEST)
		return -1;
	memcpy(&number, message + 8, 4);
	number = ntohl(number);
	header(expected, (uint32_t)length, stream, number);
	if (memcmp(message, expected, HEADER) != 0)
		return -1;
	if (whole_body && memcmp(message + HEADER, body(stream, number), length - HEADER) != 0)
		return -1;
	return number;
}
