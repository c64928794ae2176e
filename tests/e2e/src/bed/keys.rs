//! Keys, certificates and kubeconfigs of the control plane. What must not enter: who uses them for what.

use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};

/// A folder of keys.
#[derive(Debug)]
pub(crate) struct Keys {
    dir: PathBuf,
}

impl Keys {
    /// Makes a certificate authority, the server's certificate, one for each client, and the keys of service accounts.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let keys = Self { dir: dir.to_owned() };
        let (mut ca, key) = (CertificateParams::default(), KeyPair::generate()?);
        ca.distinguished_name.push(DnType::CommonName, "whittle-test-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        keys.write("ca.crt", &ca.self_signed(&key)?.pem())?;
        let ca = Issuer::new(ca, key);
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"];
        let mut server = CertificateParams::new(names.map(str::to_owned))?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        keys.signed("server", server, &ca)?;
        for (file, name, group) in [
            ("admin", "admin", Some("system:masters")),
            ("kcm", "system:kube-controller-manager", None),
            ("scheduler", "system:kube-scheduler", None),
        ] {
            let mut client = CertificateParams::default();
            client.distinguished_name.push(DnType::CommonName, name);
            if let Some(group) = group {
                client.distinguished_name.push(DnType::OrganizationName, group);
            }
            client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            keys.signed(file, client, &ca)?;
        }
        let accounts = KeyPair::generate()?;
        keys.write("accounts.key", &accounts.serialize_pem())?;
        keys.write("accounts.pub", &accounts.public_key_pem())?;
        Ok(keys)
    }

    fn signed(&self, name: &str, params: CertificateParams, ca: &Issuer<'_, KeyPair>) -> Result<()> {
        let key = KeyPair::generate()?;
        self.write(&format!("{name}.crt"), &params.signed_by(&key, ca)?.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.path(name), text)?)
    }

    /// A file of the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a kubeconfig by certificate, in JSON, which is YAML too. Answers with its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn kubeconfig(&self, server: &str, client: &str) -> Result<PathBuf> {
        let user = json!({ "client-certificate": self.path(&format!("{client}.crt")), "client-key": self.path(&format!("{client}.key")) });
        self.configure(&format!("{client}.conf"), server, &json!({ "certificate-authority": self.path("ca.crt") }), &user)
    }

    /// Writes a kubeconfig by token, such as a pod has: the authority is in it. Answers with its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn kubeconfig_of_token(&self, server: &str, name: &str, token: &str) -> Result<PathBuf> {
        let authority = base64::engine::general_purpose::STANDARD.encode(std::fs::read(self.path("ca.crt"))?);
        self.configure(&format!("{name}.conf"), server, &json!({ "certificate-authority-data": authority }), &json!({ "token": token }))
    }

    fn configure(&self, file: &str, server: &str, authority: &Value, user: &Value) -> Result<PathBuf> {
        let mut cluster = authority.clone();
        cluster["server"] = json!(server);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bed",
            "clusters": [{ "name": "bed", "cluster": cluster }],
            "users": [{ "name": "bed", "user": user }],
            "contexts": [{ "name": "bed", "context": { "cluster": "bed", "user": "bed" } }],
        });
        self.write(file, &config.to_string())?;
        Ok(self.path(file))
    }
}
