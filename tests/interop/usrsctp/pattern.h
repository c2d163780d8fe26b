/* Messages that say which they are, and whose every byte is known to both ends.
 *
 * A message has a header of 16 bytes in network order (magic, stream, 0, number within the stream,
 * length of the whole message) and a body out of one table of pseudo-random bytes, from an offset that
 * depends on stream and number. Whatever is lost, doubled, cut or put together wrongly shows. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADER 16

void pattern_prepare(void);
void pattern_write(uint8_t *message, uint32_t length, uint16_t stream, uint32_t number);
/* The number of the message, or -1 if anything is wrong with it. */
int64_t pattern_number(const uint8_t *message, size_t length, uint16_t stream, bool whole_body);

#endif
