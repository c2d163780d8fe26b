//! A scenario's links in real time between network namespaces.
