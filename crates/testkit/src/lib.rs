//! Real planes for tests: certificates, processes, providers, raw peers. Never linked by a product program.
