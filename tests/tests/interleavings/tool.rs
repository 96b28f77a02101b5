//! The handler: steps, two questions at once, a step behind one of them, a sleep, and beside a step a
//! question whose text changes with the price.

use std::{collections::BTreeMap, time::Duration};

use futures_util::join;
use mcp_edge::{Cx, KeyRing, Limits, NoArgs, Server, ToolError};
use serde::{Deserialize, Serialize};

use crate::{
    log::{By, Run},
    world::{DAY, World, below, millis, pause},
};

/// What questions ask for. An answer repeats its question, so that one shows which it was given to.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Text {
    pub(crate) text: String,
}

/// The steps, in their order.
pub(crate) const STEPS: [&str; 4] = ["reserve", "pack", "load", "pay"];

/// What the handler returns: by the keys of its questions, what it asked and what the answer was.
pub(crate) type Told = BTreeMap<String, (String, String)>;

/// An instance, as requests or runs meet it.
pub(crate) fn instance(world: &World, by: By) -> Server {
    let mut limits = Limits::default();
    limits.task_ttl = world.ttl;
    // Nothing fails for having taken long.
    limits.call_timeout = DAY;
    limits.task_attempts = u32::MAX;
    let told = world.clone();
    Server::builder("interleavings", "1.0.0")
        .anonymous_tasks(true)
        .limits(limits)
        .sealer(KeyRing::new(1, &[7; 32]))
        .tool("order", "", move |cx: Cx, _: NoArgs| order(cx, told.clone(), by))
        .build()
        .unwrap()
        .with_tasks(world.store(by), world.clone())
}

async fn order(cx: Cx, world: World, by: By) -> Result<String, ToolError> {
    ask(&cx, "who", "Who?").await?;
    cx.background("").await;
    let run = world.log().run_of(by);
    step(&cx, &world, run, "reserve").await?;
    let (size, colour) = join!(ask(&cx, "size", "Size?"), async {
        let colour = ask(&cx, "colour", "Colour?").await?;
        step(&cx, &world, run, "pack").await?;
        Ok::<_, ToolError>(colour)
    });
    let (size, colour) = (size?, colour?);
    cx.sleep("rest", Duration::from_secs(5)).await;
    let price = world.log().price(world.clock.now());
    let (price, loaded) = join!(ask(&cx, "price", price), step(&cx, &world, run, "load"));
    loaded?;
    step(&cx, &world, run, "pay").await?;
    let told = Told::from_iter([size, colour, price?]);
    Ok(serde_json::to_string(&told)?)
}

async fn ask(cx: &Cx, key: &str, text: &str) -> Result<(String, (String, String)), ToolError> {
    let answer = cx.elicit::<Text>(key, text).await.required()?.text;
    Ok((key.to_owned(), (text.to_owned(), answer)))
}

/// A step that takes some time, now and then longer than a lease.
async fn step(cx: &Cx, world: &World, run: Run, name: &'static str) -> Result<(), ToolError> {
    cx.step(name, async || {
        world.log().step_begins(run, name);
        for _ in 0..below(3) {
            pause().await;
            world.clock.sleep(millis(6_000)).await;
        }
        world.log().step_ends(name);
        Ok::<_, ToolError>(())
    })
    .await
}
