//! Runs one scenario of a kube-rs client against the cluster of a kubeconfig: clients KUBECONFIG SCENARIO.
//! It ends with 0 when all came true, else says what did not.
mod apply;
mod controller;
mod custom;
mod dynamic;
mod typed;
mod watchers;

use std::{error::Error, future::Future, process::ExitCode, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, scenario] = arguments.as_slice() else {
        eprintln!("usage: clients KUBECONFIG SCENARIO");
        return ExitCode::from(2);
    };
    match tokio::time::timeout(Duration::from_secs(60), run(kubeconfig, scenario)).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("{scenario}: {error} ({error:?})");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("{scenario}: did not end within a minute");
            ExitCode::FAILURE
        }
    }
}

async fn run(kubeconfig: &str, scenario: &str) -> Result {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    match scenario {
        "apply" => apply::run(client).await,
        "typed" => typed::run(client).await,
        "watchers" => watchers::run(client).await,
        "custom" => custom::run(client).await,
        "dynamic" => dynamic::run(client).await,
        "controller" => controller::run(client).await,
        other => Err(format!("there is no scenario \"{other}\"").into()),
    }
}

/// Fails with `what` unless it is true.
pub fn expect(is_so: bool, what: impl FnOnce() -> String) -> Result {
    if is_so { Ok(()) } else { Err(what().into()) }
}

/// Fails unless the API server answered with this code.
pub fn refused<T>(code: u16, answer: kube::Result<T>) -> Result {
    match answer {
        Err(kube::Error::Api(status)) if status.code == code => Ok(()),
        Err(error) => Err(format!("not refused with {code}: {error}").into()),
        Ok(_) => Err(format!("not refused with {code}").into()),
    }
}

/// Asks again until it is true; the minute of the scenario is the end of it.
pub async fn until<F: Future<Output = Result<bool>>>(mut check: impl FnMut() -> F) -> Result {
    while !check().await? {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A namespace of the scenario's own.
pub async fn new_namespace(client: &Client, name: &str) -> Result {
    let namespace = Namespace { metadata: named(name), ..Namespace::default() };
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
