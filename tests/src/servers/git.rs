//! git over http (`git http-backend`) and over ssh (`sshd`), with repositories made by git itself.

pub mod http;
pub mod repository;
pub mod sshd;

pub use http::{Fault, GitHttp, Options, Seen};
pub use repository::Repository;
pub use sshd::{Sshd, ssh_key};
