//! Reads keys and region from a profile of the AWS tools in `~/.aws/credentials` and `~/.aws/config`.
//! Settings that run programs or query services are not supported.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

use crate::platform;

/// The maximum size of such a file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The supported keys of the files, and the options that they set.
const KEYS: [(&str, &str); 5] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
    ("region", "AWS_REGION"),
    ("endpoint_url", "AWS_ENDPOINT_URL"),
];

/// Settings that only the AWS tools support.
const FOREIGN: [&str; 4] = [
    "credential_process",
    "sso_session",
    "sso_start_url",
    "role_arn",
];

/// Reads the options of the profile that `AWS_PROFILE` names, or of `default`.
///
/// # Errors
/// The profile in `AWS_PROFILE` does not exist, or the profile needs the AWS tools.
pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>, String> {
    let file = |name: &str, default: &str| {
        let path = variable(name)
            .or_else(|| Some(format!("{}/.aws/{default}", variable(platform::HOME)?)));
        path.map(|path| read_text(&path)).unwrap_or_default()
    };
    let asked = variable("AWS_PROFILE");
    let name = asked.as_deref().unwrap_or("default");
    let credentials = read_section(&file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name);
    let config = file("AWS_CONFIG_FILE", "config");
    // In this file, all profiles but the default have a prefix.
    let config = match read_section(&config, &format!("profile {name}")) {
        None if name == "default" => read_section(&config, name),
        found => found,
    };
    if asked.is_some() && credentials.is_none() && config.is_none() {
        return Err(format!(
            "AWS_PROFILE is {name}, and neither ~/.aws/credentials nor ~/.aws/config has such a profile"
        ));
    }
    let mut values = config.unwrap_or_default();
    values.extend(credentials.unwrap_or_default());
    let options: BTreeMap<String, String> = KEYS
        .iter()
        .filter_map(|(key, option)| Some(((*option).to_owned(), values.get(*key)?.clone())))
        .collect();
    let foreign = FOREIGN.iter().find(|key| values.contains_key(**key));
    match foreign {
        Some(key) if !options.contains_key("AWS_ACCESS_KEY_ID") => Err(format!(
            "the AWS profile {name} has {key}, which only the AWS tools support; run: \
             eval \"$(aws configure export-credentials --profile {name} --format env)\""
        )),
        _ => Ok(options),
    }
}

/// Reads a file. One that cannot be read counts as empty, as for the AWS tools.
fn read_text(path: &str) -> String {
    let mut text = String::new();
    let file = File::open(path).ok();
    let read = file.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text).ok());
    read.map(|_| text).unwrap_or_default()
}

/// Reads the `key = value` lines of one section. Indented lines belong to keys that are not supported.
fn read_section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut inside = false;
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            inside = header.split(']').next().map(str::trim) == Some(name);
            if inside {
                found.get_or_insert_default();
            }
        } else if inside
            && !line.starts_with(['#', ';', ' ', '\t'])
            && let Some((key, value)) = line.split_once('=')
            && let Some(found) = &mut found
        {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# mine\n[default]\naws_access_key_id = D\naws_secret_access_key=S=1\n\n\
        [ci]\naws_access_key_id=C\naws_secret_access_key=T\naws_session_token=U\n";
    const CONFIG: &str = "[default]\nregion = eu-central-1\ns3 =\n  region = no\n\n[profile ci]\nregion=us-west-2\n\
        endpoint_url=https://s3.example.test\n[profile sso]\nsso_session = x\n[profile bare]\noutput=json\n";

    fn check(profile: Option<&str>) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        std::fs::write(folder.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        std::fs::write(folder.path().join(".aws/config"), CONFIG).unwrap();
        let home = folder.path().to_string_lossy().into_owned();
        let variable = |name: &str| match name {
            platform::HOME => Some(home.clone()),
            "AWS_PROFILE" => profile.map(str::to_owned),
            _ => None,
        };
        let options = read(&variable)?;
        let options = options
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        Ok(options.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn profiles() {
        for (profile, expected) in [
            (
                None,
                Ok("AWS_ACCESS_KEY_ID=D AWS_REGION=eu-central-1 AWS_SECRET_ACCESS_KEY=S=1"),
            ),
            (
                Some("ci"),
                Ok(
                    "AWS_ACCESS_KEY_ID=C AWS_ENDPOINT_URL=https://s3.example.test AWS_REGION=us-west-2 \
                    AWS_SECRET_ACCESS_KEY=T AWS_SESSION_TOKEN=U",
                ),
            ),
            (Some("bare"), Ok("")),
            (
                Some("sso"),
                Err(
                    "the AWS profile sso has sso_session, which only the AWS tools support; run: \
                     eval \"$(aws configure export-credentials --profile sso --format env)\"",
                ),
            ),
            (
                Some("other"),
                Err(
                    "AWS_PROFILE is other, and neither ~/.aws/credentials nor ~/.aws/config has such a profile",
                ),
            ),
        ] {
            let found = check(profile);
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{profile:?}"
            );
        }
        assert_eq!(read(&|_| None), Ok(BTreeMap::new()));
    }
}
