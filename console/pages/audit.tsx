// The audit log that a logical cluster keeps for its users, as it grows.
import { useSignal, type ReadonlySignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { auditPath } from '#crds/index.ts'
import { pause } from '#console/kube/follow.ts'
import { lineBatches } from '#console/kube/lines.ts'
import { clusterPath } from '#console/kube/paths.ts'
import { ApiError, messageOf, request } from '#console/kube/request.ts'
import { auditLine, matchingLines, type AuditLine } from '#console/model/audit-line.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Badge, Command, Link, Notice, Plain, Plot } from '#console/parts/common.tsx'
import { FilterInput } from '#console/parts/filter-input.tsx'
import { clusters, clustersError, clustersKnown, useClusters } from '#console/state/clusters.ts'
import { text } from '#console/text.ts'

const t = text.audit
/** Lines that are kept, and lines that are drawn: the newest ones. */
const [maxLines, maxShown] = [2000, 300]
const againMs = 3000

export function AuditPage({ cluster }: { readonly cluster?: string | undefined }): JSX.Element {
  useClusters()
  const readable = clusters.value.filter(({ audit }) => audit?.readable === true)
  const only = clusters.value.length === 1 ? readable[0]?.name : undefined
  const name = cluster ?? only
  const problem = clusters.value.find((one) => one.name === name)?.audit?.problem
  return (
    <section class="page">
      {clustersError.value !== '' ? <Notice kind="bad">{clustersError.value}</Notice> : null}
      {problem === undefined ? null : (
        <Notice kind="bad">
          <Plain>{problem}</Plain>
        </Notice>
      )}
      {name === undefined ? <List names={readable.map((one) => one.name)} /> : <Log key={name} name={name} />}
    </section>
  )
}

function List({ names }: { readonly names: readonly string[] }): JSX.Element {
  const { value } = clusters
  const failing = value.filter(({ audit }) => audit?.problem !== undefined)
  return (
    <>
      <h1>{t.title}</h1>
      {clustersKnown.value && names.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      <ul>
        {names.map((name) => (
          <li key={name}>
            <Link to={{ page: 'audit', cluster: name }}>{name}</Link>
          </li>
        ))}
      </ul>
      {failing.map(({ name, audit }) => (
        <Notice key={name} kind="bad">
          <Plain>{`${name}: ${audit?.problem ?? ''}`}</Plain>
        </Notice>
      ))}
    </>
  )
}

function Log({ name }: { readonly name: string }): JSX.Element {
  const filter = useSignal('')
  const input = useRef<HTMLInputElement>(null)
  const log = useAuditLog(name)
  const { lines, problem, isGap } = log.value
  const found = matchingLines(lines, filter.value)
  const shown = found.slice(-maxShown).reverse()
  return (
    <>
      <div class="toolbar">
        <h1>{visibleText(t.titleOf(name))}</h1>
        <FilterInput filter={filter} label={t.filter} input={input} />
        <span class="count" role="status">
          {text.table.count(found.length, lines.length)}
        </span>
      </div>
      {problem === undefined ? null : <Notice kind="bad">{visibleText(problem)}</Notice>}
      {isGap ? <Notice kind="info">{t.gap}</Notice> : null}
      {lines.length === 0 && problem === undefined ? <Notice kind="info">{t.empty}</Notice> : null}
      {shown.length === 0 ? null : (
        <Plot head={[t.time, t.user, t.verb, t.code, t.object, t.request]}>
          {shown.map((line) => (
            <tr key={line.key}>
              <td>
                <time dateTime={line.time}>{line.time}</time>
              </td>
              <td>
                <Plain>{line.user}</Plain>
              </td>
              <td>
                <Plain>{line.verb}</Plain>
              </td>
              <td>{line.code === '' ? null : <Badge tone={line.isRefused ? 'bad' : 'good'}>{line.code}</Badge>}</td>
              <td>
                <Plain>{line.object}</Plain>
              </td>
              <td class="wrap">
                <Plain>{line.request}</Plain>
              </td>
            </tr>
          ))}
        </Plot>
      )}
      {found.length > maxShown ? <p class="quiet">{t.more(found.length - maxShown)}</p> : null}
      <p class="quiet">{t.inTerminal}</p>
      <Command>{`kcp audit ${name} -f`}</Command>
    </>
  )
}

interface AuditLog {
  /** The oldest first. */
  readonly lines: readonly AuditLine[]
  readonly problem?: string
  /** Events came faster than they were read, or the server has restarted. */
  readonly isGap: boolean
}

/** Follows the log while the part is shown, and goes on from its last event after a break. */
function useAuditLog(name: string): ReadonlySignal<AuditLog> {
  const log = useSignal<AuditLog>({ lines: [], isGap: false })
  useEffect(() => {
    const life = new AbortController()
    const { signal } = life
    log.value = { lines: [], isGap: false }
    void (async () => {
      let after: string | undefined
      while (!signal.aborted) {
        try {
          const query = { follow: 'true', after }
          const response = await request(`${clusterPath(name)}${auditPath}`, { query, signal })
          for await (const batch of lineBatches(response)) {
            const added = batch.map(auditLine).filter((line) => line !== undefined)
            after = added.at(-1)?.position ?? after
            const { isGap, lines } = log.value
            log.value = { isGap, lines: [...lines, ...added].slice(-maxLines) }
          }
        } catch (error) {
          if (life.signal.aborted) return
          const isGap = error instanceof ApiError && error.status === 410
          if (isGap) after = undefined
          const { lines } = log.value
          log.value = isGap ? { lines: [], isGap } : { ...log.value, lines, problem: messageOf(error) }
        }
        await pause(againMs, signal)
      }
    })()
    return () => life.abort()
  }, [name])
  return log
}
