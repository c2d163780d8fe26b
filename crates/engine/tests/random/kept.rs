//! Cases that failed once, in their least form.
