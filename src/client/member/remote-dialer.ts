// Connections to members in pull mode, from a process that does not hold their tunnels.
import type { Duplex } from 'node:stream'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import { readJson, type Transport } from '#client/index.ts'
import type { MemberDialer, TunnelledMember } from './connect-to-member.ts'

/** The protocol that is asked for in the header Upgrade: the bytes of one connection. */
export const connectionProtocol = 'kcp-connection'

/** How long the server may take to open a connection, milliseconds. */
const withinMs = 15_000

const maxRefusalBytes = 64 * 1024

/** Opens connections through the API server at the other end of the transport. */
export function remoteDialer(transport: Pick<Transport, 'upgrade'>): MemberDialer {
  return {
    async dial(member, session, needs) {
      const life = new AbortController()
      const late = serviceUnavailable(`the server opened no connection to member cluster "${member.name}" in time`)
      const timer = setTimeout(() => life.abort(late), withinMs)
      try {
        return await connectionOf(
          await transport.upgrade({ ...requestFor(member, session, needs), signal: life.signal }),
        )
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

function requestFor({ name, uid }: TunnelledMember, session: string, needs: string | undefined) {
  return {
    method: 'GET',
    path: `/services/agent/${name}/connection?uid=${uid}&session=${session}${needs === undefined ? '' : `&needs=${needs}`}`,
    rawHeaders: ['connection', 'Upgrade', 'upgrade', connectionProtocol],
  }
}

async function connectionOf(result: Awaited<ReturnType<Transport['upgrade']>>): Promise<Duplex> {
  if ('refused' in result) {
    await readJson(result.refused, { maxBytes: maxRefusalBytes })
    throw serviceUnavailable('the server answered without the upgrade that was asked for')
  }
  const { socket, head } = result.upgraded
  if (head.length > 0) socket.unshift(head)
  return socket
}
