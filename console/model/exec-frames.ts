// Frames of the protocol v5.channel.k8s.io: the first byte of a message is its channel.

export const execProtocol = 'v5.channel.k8s.io'

export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const

export interface Frame {
  readonly channel: number
  readonly payload: Uint8Array
}

export function frame(channel: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(payload.length + 1)
  bytes[0] = channel
  bytes.set(payload, 1)
  return bytes
}

export function resizeFrame(columns: number, rows: number): Uint8Array<ArrayBuffer> {
  return frame(channels.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })))
}

/** The frame of a message; undefined if it is empty. */
export function parseFrame(message: ArrayBuffer): Frame | undefined {
  const bytes = new Uint8Array(message)
  const [channel] = bytes
  return channel === undefined ? undefined : { channel, payload: bytes.subarray(1) }
}

/** What the error channel says about the end: empty if the command succeeded. */
export function endText(payload: Uint8Array): string {
  const text = new TextDecoder().decode(payload)
  try {
    const status = JSON.parse(text) as { status?: string; message?: string }
    return status.status === 'Success' ? '' : (status.message ?? text)
  } catch {
    return text
  }
}
