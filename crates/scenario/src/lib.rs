//! The scenario file: schema, units, defaults, errors that point at the line.
