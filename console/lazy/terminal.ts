// xterm over the WebSocket of the Kubernetes exec protocol. Loaded when a terminal is opened.
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { channels, endText, execProtocol, frame, parseFrame, resizeFrame } from '#console/model/exec-frames.ts'
import { stampStyles } from './style-nonce.ts'

export interface TerminalOptions {
  readonly parent: HTMLElement
  readonly url: string
  readonly opened: () => void
  /** The message is empty if the command succeeded. */
  readonly ended: (message: string) => void
}

/** Opens the terminal; returns a function that closes it. */
export function openTerminal({ parent, url, opened, ended }: TerminalOptions): () => void {
  stampStyles()
  parent.replaceChildren()
  const terminal = new Terminal({
    cursorBlink: true,
    fontSize: 13,
    scrollback: 10_000,
    // The program decides what a terminal shows: no address in it may be opened.
    linkHandler: { activate: () => undefined },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(parent)
  fit.fit()
  const socket = new WebSocket(url, [execProtocol])
  socket.binaryType = 'arraybuffer'
  let message = ''
  let isOpen = false
  const send = (bytes: Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(bytes)
  }
  const observer = new ResizeObserver(() => fit.fit())
  observer.observe(parent)
  terminal.onResize(({ cols, rows }) => send(resizeFrame(cols, rows)))
  terminal.onData((data) => send(frame(channels.stdin, new TextEncoder().encode(data))))
  socket.onopen = () => {
    isOpen = true
    send(resizeFrame(terminal.cols, terminal.rows))
    terminal.focus()
    opened()
  }
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const found = parseFrame(data)
    if (found === undefined) return
    if (found.channel === channels.stdout || found.channel === channels.stderr) terminal.write(found.payload)
    if (found.channel === channels.error) message = endText(found.payload)
  }
  socket.onclose = ({ reason }) => {
    observer.disconnect()
    // A browser does not say why an upgrade was refused.
    ended(message !== '' ? message : isOpen ? reason : 'the server refused the connection')
  }
  return () => {
    socket.close()
    observer.disconnect()
    terminal.dispose()
  }
}
