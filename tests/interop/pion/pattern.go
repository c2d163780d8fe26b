package main

import (
	"bytes"
	"encoding/binary"
)

// Messages as in ../usrsctp/pattern.h: a header of 16 bytes, and a body out of one table that both ends
// have.
const (
	header  = 16
	magic   = 0x52574c4b
	offsets = 65521
	longest = 1 << 20
)

var table = makeTable()

func makeTable() []byte {
	all := make([]byte, 0, offsets+longest+8)
	state := uint64(0x9e3779b97f4a7c15)
	// Marsaglia's xorshift, little-endian.
	for len(all) < offsets+longest {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		all = binary.LittleEndian.AppendUint64(all, state)
	}
	return all
}

func message(stream uint16, number uint32, length int) []byte {
	from := (uint64(stream)*7919 + uint64(number)*104729) % offsets
	out := make([]byte, 0, length)
	for _, word := range []uint32{magic, uint32(stream) << 16, number, uint32(length)} {
		out = binary.BigEndian.AppendUint32(out, word)
	}
	return append(out, table[from:int(from)+length-header]...)
}

func isMessage(got []byte, stream uint16, number uint32) bool {
	return len(got) >= header && len(got) <= longest && bytes.Equal(got, message(stream, number, len(got)))
}
