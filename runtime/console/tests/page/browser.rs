//! A headless Chromium that is controlled over a pipe, by the Chrome DevTools Protocol.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    /// Of the page.
    session: Option<String>,
    complaints: Vec<Value>,
    profile: PathBuf,
}

impl Browser {
    pub(crate) fn start() -> io::Result<Self> {
        let program = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let profile = env::temp_dir().join(format!("mini-console-{}-{number}", std::process::id()));
        let options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-pipe",
            "--hide-scrollbars",
        ];
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, &program])
            .args(options)
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (commands, out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (send, messages) = channel();
        thread::spawn(move || {
            for message in out.split(0).map_while(Result::ok) {
                let _ = send.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let mut browser =
            Self { child, commands, messages, last_id: 0, session: None, complaints: Vec::new(), profile };
        browser.attach();
        Ok(browser)
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let params = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", params)["sessionId"].as_str().unwrap().to_owned();
        self.session = Some(session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Sends a command and waits for what it gives.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.messages.recv_timeout(Duration::from_secs(60)).expect("the browser answers");
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            if ["Runtime.exceptionThrown", "Log.entryAdded"].contains(&message["method"].as_str().unwrap_or("")) {
                self.complaints.push(message["params"].clone());
            }
        }
    }

    /// What the page has thrown, or the browser has logged about it.
    pub(crate) fn complaints(&mut self) -> Vec<Value> {
        self.eval("1");
        self.complaints.clone()
    }

    pub(crate) fn open(&mut self, page: &str) {
        let went = self.call("Page.navigate", json!({ "url": page }));
        assert!(went["errorText"].is_null(), "{went}");
        self.wait_for("document.readyState === 'complete' && location.protocol === 'http:'");
    }

    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until the script is true. The test's limit ends that.
    pub(crate) fn wait_for(&mut self, script: &str) {
        for round in 0.. {
            if self.eval(&format!("Boolean({script})")) == true {
                return;
            }
            if round == 200 {
                let text = self.eval("document.body.innerText");
                panic!("for twenty seconds it was not so: {script}\n{}", text.as_str().unwrap_or_default());
            }
            self.eval("new Promise(done => setTimeout(done, 100))");
        }
    }

    /// Presses a key, as a user does.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            "Escape" => (27, ""),
            _ => panic!("{key} is not known"),
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [down, "keyUp"] {
            let text = if kind == "keyUp" { "" } else { text };
            let params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    pub(crate) fn set_size(&mut self, width: u32, height: u32) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    pub(crate) fn set_scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Leaves a picture of what the window shows, if somebody wants it.
    pub(crate) fn picture(&mut self, name: &str) {
        let Ok(folder) = env::var("MINI_SCREENSHOTS") else { return };
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        fs::create_dir_all(&folder).unwrap();
        fs::write(format!("{folder}/{name}.png"), from_base64(shot["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its processes, which else would write to the folder for a while.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        while self.messages.recv_timeout(Duration::from_secs(10)).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// RFC 4648, section 4.
fn from_base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |byte: u8| digits.iter().position(|&digit| digit == byte).map(|value| value as u32);
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes().map_while(value) {
        (bits, count) = (bits << 6 | digit, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
