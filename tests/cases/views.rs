//! Random states, seen late or with gaps. `SEED` is what chance decides; it is printed.
//!
//! | module | what |
//! |---|---|
//! | `seen` | the loop and `sync` see the past, miss an event, or end in the middle: the three classes of faults of Sieve (OSDI 2022) |
//! | `states` | records, catalogues and policies go through random states that their schemas allow, as Acto does it (SOSP 2023) |
//! | `judged` | the webhook judges removals while it has not heard of what they concern |
//!
//! The invariants are those of `crash`: nothing leaks, nothing of others changes, and the end is that of an undisturbed run.

mod judged;
mod seen;
mod states;
