//! The signals that ask a program to end: SIGINT and SIGTERM on Unix; Ctrl-C, Ctrl-Break, a closed console and the end of the session on
//! Windows.

#[cfg(unix)]
pub use self::unix::Signals;
#[cfg(windows)]
pub use self::windows::Signals;

#[cfg(unix)]
mod unix {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Listens for signals. A signal that it cannot listen for ends the program by the system's default.
    pub struct Signals {
        interrupt: Option<Signal>,
        terminate: Option<Signal>,
    }

    impl Signals {
        /// Starts to listen. Requires a runtime.
        pub fn listen() -> Self {
            Self {
                interrupt: signal(SignalKind::interrupt()).ok(),
                terminate: signal(SignalKind::terminate()).ok(),
            }
        }

        /// Waits for the next signal.
        pub async fn next(&mut self) {
            tokio::select! {
                Some(()) = async { self.interrupt.as_mut()?.recv().await } => {}
                Some(()) = async { self.terminate.as_mut()?.recv().await } => {}
                else => std::future::pending().await,
            }
        }
    }
}

#[cfg(windows)]
mod windows {
    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
    };

    /// Listens for signals. A signal that it cannot listen for ends the program by the system's default.
    pub struct Signals {
        interrupt: Option<CtrlC>,
        stop: Option<CtrlBreak>,
        close: Option<CtrlClose>,
        shutdown: Option<CtrlShutdown>,
    }

    impl Signals {
        /// Starts to listen. Requires a runtime.
        pub fn listen() -> Self {
            Self {
                interrupt: ctrl_c().ok(),
                stop: ctrl_break().ok(),
                close: ctrl_close().ok(),
                shutdown: ctrl_shutdown().ok(),
            }
        }

        /// Waits for the next signal.
        pub async fn next(&mut self) {
            tokio::select! {
                Some(()) = async { self.interrupt.as_mut()?.recv().await } => {}
                Some(()) = async { self.stop.as_mut()?.recv().await } => {}
                Some(()) = async { self.close.as_mut()?.recv().await } => {}
                Some(()) = async { self.shutdown.as_mut()?.recv().await } => {}
                else => std::future::pending().await,
            }
        }
    }
}
