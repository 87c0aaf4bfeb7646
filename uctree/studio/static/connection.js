// The socket to the server, opened again when it is lost.

const FIRST_WAIT = 250, LONGEST_WAIT = 4000; // milliseconds

// `opened()` is called whenever there is a connection, `received(message)` for every message,
// `changed(isConnected)` when it is gained or lost.
export const connect = ({ opened, received, changed }) => {
  let socket = null, wait = FIRST_WAIT;
  const open = () => {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
    socket.addEventListener("open", () => { wait = FIRST_WAIT; changed(true); opened(); });
    socket.addEventListener("message", (event) => received(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      changed(false);
      setTimeout(open, wait);
      wait = Math.min(LONGEST_WAIT, 2 * wait);
    });
  };
  open();
  return (kind, content = {}) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ kind, ...content }));
  };
};
