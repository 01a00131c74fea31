//! Files and http(s).

#[path = "url/answers.rs"]
mod answers;
#[path = "url/credentials.rs"]
mod credentials;
#[path = "url/redirects.rs"]
mod redirects;
#[path = "url/revalidation.rs"]
mod revalidation;
