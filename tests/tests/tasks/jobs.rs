//! Jobs of another system: their sealed ids are all that there is.

use std::sync::{Arc, Mutex};

use mcp_edge::{
    Cx, Job, JobStatus, KeyRing, NoArgs, RequestError, Server, ServerBuilder, ToolError,
};
use mcp_edge_test::{Client, TaskStatus};
use serde_json::json;

/// A system that runs jobs and calls them by numbers.
#[derive(Clone, Default)]
struct Elsewhere(Arc<Mutex<Vec<Status>>>);

type Status = JobStatus<Result<String, &'static str>>;

impl Elsewhere {
    fn set(&self, job: usize, status: Status) {
        self.0.lock().unwrap()[job] = status;
    }
}

impl Job for Elsewhere {
    type Args = NoArgs;
    type Out = Result<String, ToolError>;

    async fn start(&self, _: Cx, _: NoArgs) -> Result<String, ToolError> {
        let mut jobs = self.0.lock().unwrap();
        jobs.push(JobStatus::Working(Some("queued".to_owned())));
        Ok((jobs.len() - 1).to_string())
    }

    async fn poll(
        &self,
        handle: &str,
    ) -> Result<JobStatus<Result<String, ToolError>>, RequestError> {
        let job: usize = handle.parse()?;
        Ok(match self.0.lock().unwrap()[job].clone() {
            JobStatus::Done(done) => JobStatus::Done(done.map_err(ToolError::new)),
            JobStatus::Working(text) => JobStatus::Working(text),
            JobStatus::Cancelled => JobStatus::Cancelled,
        })
    }

    async fn cancel(&self, handle: &str) -> Result<(), RequestError> {
        self.set(handle.parse()?, JobStatus::Cancelled);
        Ok(())
    }
}

fn builder(jobs: &Elsewhere) -> ServerBuilder {
    Server::builder("jobs", "1.0.0")
        .job("build", "Builds", jobs.clone())
        .sealer(KeyRing::new(1, &[7; 32]))
        .anonymous_tasks(true)
}

/// A client of two instances that share nothing but the key.
fn client(jobs: &Elsewhere) -> Client {
    Client::fleet([(); 2].map(|()| builder(jobs).build().unwrap())).with_tasks()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_followed_without_a_store() {
    let jobs = Elsewhere::default();
    let client = client(&jobs);
    let task = client.start("build", json!({})).await.unwrap();
    assert!(task.id.len() <= 512);
    for _ in 0..4 {
        let task = client.task(&task.id).await.unwrap();
        let message = task.status_message.as_deref();
        assert_eq!((task.status, message), (TaskStatus::Working, Some("queued")));
    }
    jobs.set(0, JobStatus::Done(Ok("built".to_owned())));
    assert_eq!(client.follow(&task).await.unwrap().text(), "built");

    let task = client.start("build", json!({})).await.unwrap();
    jobs.set(1, JobStatus::Done(Err("it does not compile")));
    let called = client.follow(&task).await.unwrap();
    assert_eq!((called.is_error(), called.text()), (true, "it does not compile".into()));
}

#[tokio::test(start_paused = true)]
async fn a_job_is_cancelled_where_it_runs() {
    let jobs = Elsewhere::default();
    let client = client(&jobs);
    let task = client.start("build", json!({})).await.unwrap();
    client.update_task(&task.id, json!({})).await.unwrap();
    for wrong in [json!(null), json!(7)] {
        let params = json!({ "taskId": task.id, "inputResponses": wrong });
        let refused = client.round("tasks/update", params).await.unwrap();
        assert_eq!(refused.code(), Some(-32602), "TASK-28");
    }
    client.cancel_task(&task.id).await.unwrap();
    assert_eq!(client.task(&task.id).await.unwrap().status, TaskStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_tasks_waits_for_the_job() {
    let jobs = Elsewhere::default();
    let client = Client::in_process(&builder(&jobs).build().unwrap());
    let finish = async {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        jobs.set(0, JobStatus::Done(Ok("built".to_owned())));
    };
    let (called, ()) = futures_util::join!(client.call("build", json!({})), finish);
    assert_eq!(called.unwrap().text(), "built");
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_job_is_its_owners_and_has_an_end() {
    let jobs = Elsewhere::default();
    let client = client(&jobs);
    let task = client.start("build", json!({})).await.unwrap();
    let other = Server::builder("other", "1.0.0").job("build", "", jobs.clone());
    let other = other.sealer(KeyRing::new(1, &[7; 32])).anonymous_tasks(true).build().unwrap();
    let other = Client::in_process(&other).with_tasks();
    assert_eq!(other.task(&task.id).await.unwrap_err().code(), Some(-32602), "another deployment");
    tokio::time::advance(std::time::Duration::from_secs(25 * 3600)).await;
    assert_eq!(client.task(&task.id).await.unwrap_err().code(), Some(-32602), "past its time");
}

#[tokio::test(start_paused = true)]
async fn a_handle_that_is_too_long_is_an_error_of_ours() {
    struct Long(usize);
    impl Job for Long {
        type Args = NoArgs;
        type Out = String;

        async fn start(&self, _: Cx, _: NoArgs) -> Result<String, ToolError> {
            Ok("x".repeat(self.0))
        }

        async fn poll(&self, handle: &str) -> Result<JobStatus<String>, RequestError> {
            Ok(JobStatus::Done(handle.len().to_string()))
        }

        async fn cancel(&self, _: &str) -> Result<(), RequestError> {
            Ok(())
        }
    }
    let server = Server::builder("long", "1").job("fits", "", Long(256)).job("not", "", Long(257));
    let server = server.sealer(KeyRing::new(1, &[7; 32])).anonymous_tasks(true).build().unwrap();
    let client = Client::in_process(&server).with_tasks();
    let task = client.start("fits", json!({})).await.unwrap();
    assert!(task.id.len() <= 512, "{}", task.id.len());
    assert_eq!(client.follow(&task).await.unwrap().text(), "256");
    assert_eq!(client.call("not", json!({})).await.unwrap_err().code(), Some(-32603));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_started_by_a_task_is_followed_by_it() {
    struct InTask(Elsewhere);
    impl Job for InTask {
        type Args = NoArgs;
        type Out = Result<String, ToolError>;

        async fn start(&self, cx: Cx, args: NoArgs) -> Result<String, ToolError> {
            cx.background("starting").await;
            self.0.start(cx, args).await
        }

        async fn poll(
            &self,
            handle: &str,
        ) -> Result<JobStatus<Result<String, ToolError>>, RequestError> {
            self.0.poll(handle).await
        }

        async fn cancel(&self, handle: &str) -> Result<(), RequestError> {
            self.0.cancel(handle).await
        }
    }
    let jobs = Elsewhere::default();
    let server = Server::builder("jobs", "1.0.0")
        .job("build", "Builds", InTask(jobs.clone()))
        .sealer(KeyRing::new(1, &[7; 32]))
        .anonymous_tasks(true);
    let server = mcp_edge_test::with_tasks(server.build().unwrap());
    let client = Client::in_process(&server).with_tasks();
    let task = client.start("build", json!({})).await.unwrap();
    super::seconds(5).await;
    jobs.set(0, JobStatus::Done(Ok("built".to_owned())));
    assert_eq!(client.follow(&task).await.unwrap().text(), "built");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_panics_answers_with_an_internal_error() {
    let jobs = Elsewhere::default();
    let client = client(&jobs);
    let task = client.start("build", json!({})).await.unwrap();
    jobs.0.lock().unwrap().clear(); // its system has forgotten it, and an index is out of bounds
    assert_eq!(client.task(&task.id).await.unwrap_err().code(), Some(-32603));
    assert_eq!(client.cancel_task(&task.id).await.unwrap_err().code(), Some(-32603));
}
