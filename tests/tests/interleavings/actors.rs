//! Who does something to the task.

use std::{sync::Arc, time::Duration};

use mcp_edge::Server;
use mcp_edge_test::Client;
use serde_json::{Map, Value, json};
use shuttle::future::spawn;

use crate::{
    log::By,
    tool::instance,
    world::{INSTANCES, Mortal, Place, Plan, WHILE, World, below, millis, one_in, pause},
};

/// Plays one schedule to its end.
pub(crate) async fn play(plan: Plan) {
    let world = World::new(plan);
    let front = Front::new(&world);
    let clock = spawn(tick(world.clone()));
    let instances = (0..INSTANCES).map(|instance| spawn(work(world.clone(), instance)));
    let instances: Vec<_> = instances.collect();
    let sweeper = spawn(sweep(world.clone()));

    let params = json!({ "name": "order", "arguments": {} });
    let asked = front.send("tools/call", params.clone()).await.unwrap();
    let mut params = params;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ "who": accept("Who? Ada") });
    let mut clients = vec![
        spawn(retry(front.clone(), params.clone(), 1)),
        spawn(retry(front.clone(), params.clone(), WHILE)),
        spawn(answer(front.clone(), "Ada")),
        spawn(answer(front.clone(), "Bob")),
    ];
    if plan.is_cancelled {
        clients.push(spawn(cancel(front.clone())));
    }
    for client in clients {
        client.await.unwrap();
    }
    world.log().close();
    for worker in instances {
        worker.await.unwrap();
    }
    for endless in [sweeper, clock] {
        endless.abort();
        assert!(endless.await.is_err());
    }
    last_looks(&front, params).await;
    world.log().judge(plan);
}

/// Sends requests to one instance or the other.
#[derive(Clone)]
struct Front {
    world: World,
    instances: Arc<[Server; INSTANCES]>,
    client: Client,
}

impl Front {
    fn new(world: &World) -> Self {
        let instances = [(); INSTANCES].map(|()| instance(world, By::Client));
        let client = Client::in_process(&instances[0]).with_tasks().accept("application/json");
        Self { world: world.clone(), instances: Arc::new(instances), client }
    }

    /// The result of a request, or the code of its error.
    async fn send(&self, method: &str, params: Value) -> Result<Value, i64> {
        let request = self.client.request(method, params);
        let place = Arc::new(Place { clock: self.world.clock.clone(), deadline: None });
        let instance = usize::try_from(below(2)).unwrap();
        let mut response = self.instances[instance].respond(request, place).await;
        let mut body = Vec::new();
        while let Some(piece) = response.body_mut().next_chunk().await {
            body.extend_from_slice(&piece);
        }
        let mut message: Value = serde_json::from_slice(&body).unwrap();
        match message["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a request about the task. `None` if the task is past its time, and not before it is.
    async fn about(&self, method: &str, mut params: Value) -> Option<Value> {
        let (id, seen) = self.world.log().look(self.world.clock.now());
        params["taskId"] = id.into();
        let reply = self.send(method, params).await;
        self.world.log().seen(&seen, self.world.clock.now(), reply)
    }

    /// Looks at the task.
    async fn get(&self) -> Option<Value> {
        self.about("tasks/get", json!({})).await
    }

    /// Waits until there is a task.
    async fn created(&self) {
        while !self.world.log().is_created() {
            self.world.clock.sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Retries the creating call, sooner or later.
async fn retry(front: Front, params: Value, latest: u64) {
    front.world.clock.sleep(millis(latest)).await;
    let started_at = front.world.clock.now();
    let reply = front.send("tools/call", params).await;
    front.world.log().retried(started_at, front.world.clock.now(), reply);
}

/// Answers what is asked until the task has ended.
async fn answer(front: Front, name: &str) {
    front.created().await;
    for number in 0.. {
        let Some(task) = front.get().await else { return };
        if is_terminal(&task) {
            return;
        }
        let mut answers = Map::new();
        for (key, question) in task["inputRequests"].as_object().into_iter().flatten() {
            if one_in(2) {
                let asked = question["params"]["message"].as_str().unwrap();
                answers.insert(key.clone(), accept(&format!("{asked} {name} {number}")));
            }
        }
        if !answers.is_empty() {
            let update = json!({ "inputResponses": answers });
            if front.about("tasks/update", update).await.is_none() {
                return;
            }
            front.world.log().acknowledged(&answers, front.world.clock.now());
        }
        front.world.clock.sleep(millis(8_000)).await;
    }
}

/// Cancels the task at some time.
async fn cancel(front: Front) {
    front.created().await;
    front.world.clock.sleep(millis(WHILE)).await;
    if front.about("tasks/cancel", json!({})).await.is_some() {
        front.world.log().cancelled();
    }
}

/// An instance that advances the task when it is told to. Some runs die, some are cut off.
async fn work(world: World, instance: usize) {
    let by = By::Instance(instance);
    let server = crate::tool::instance(&world, by);
    while !world.log().is_closed() {
        let Some(key) = world.take_due(instance) else {
            world.clock.sleep(Duration::from_millis(1)).await;
            continue;
        };
        let (clock, now) = (world.clock.clone(), world.clock.now());
        let deadline = one_in(4).then(|| now + Duration::from_secs(2) + millis(8_000));
        let place = Arc::new(Place { clock, deadline });
        let run = world.log().run_begins(instance, deadline);
        let future = Some(Box::pin(server.advance(&key, place)));
        let polls = one_in(4).then(|| below(60));
        let lived = Mortal { future, polls }.await;
        if let Some(done) = &lived {
            done.as_ref().unwrap();
        }
        world.log().run_ends(run, lived.is_none(), world.clock.now());
    }
}

/// Finds what the driver lost, and what those left behind who died.
async fn sweep(world: World) {
    let server = instance(&world, By::Client);
    loop {
        let place = Place { clock: world.clock.clone(), deadline: None };
        for key in server.sweep_tasks(&place).await.unwrap() {
            world.schedule(&key, world.clock.now());
        }
        world.clock.sleep(Duration::from_secs(3)).await;
    }
}

/// Moves the clock: mostly a little, sometimes so far that leases run out.
async fn tick(world: World) {
    loop {
        let by = match below(20) {
            0 => Duration::from_secs(6) + millis(8_000),
            1..4 => millis(3_000),
            _ => millis(300),
        };
        world.clock.advance(by);
        pause().await;
    }
}

/// When all is quiet: the task stays what it is until its time is over, and is unknown from then on.
async fn last_looks(front: &Front, retry: Value) {
    let clock = &front.world.clock;
    let left = front.world.log().expires().since(clock.now());
    if !left.is_zero() {
        clock.advance(left - Duration::from_millis(1));
        assert!(is_terminal(&front.get().await.unwrap()), "the task never ended");
        clock.advance(Duration::from_millis(1));
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let reply = front.about(method, json!({ "inputResponses": {} })).await;
        assert_eq!(reply, None, "{method}");
    }
    let reply = front.send("tools/call", retry).await;
    front.world.log().retried(clock.now(), clock.now(), reply);
}

pub(crate) fn is_terminal(task: &Value) -> bool {
    ["completed", "failed", "cancelled"].iter().any(|status| task["status"] == *status)
}

fn accept(text: &str) -> Value {
    json!({ "action": "accept", "content": { "text": text } })
}
