// A bound of the interim answers (103 Early Hints and the like) of a server.
import type { ClientRequest } from 'node:http'

/** Before the real answer; a server that sends more is not waited for. */
const maxInterim = 8

/** Destroys the request with this error once its server has sent too many interim answers. */
export function endAfterInterim(sent: ClientRequest, error: () => Error): void {
  let interim = 0
  sent.on('information', () => {
    if (++interim > maxInterim) sent.destroy(error())
  })
}
