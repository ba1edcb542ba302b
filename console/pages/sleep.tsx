// Which logical clusters sleep, since when and why, and what wakes them.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { wakeOrderAnnotation } from '#crds/index.ts'
import { clusterPath } from '#console/kube/paths.ts'
import { messageOf, request } from '#console/kube/request.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, Badge, Command, Notice, Plain, Plot } from '#console/parts/common.tsx'
import {
  clusters,
  clustersError,
  clustersKnown,
  readClusters,
  useClusters,
  type ClusterItem,
} from '#console/state/clusters.ts'
import { onlyCluster, session } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.sleep
/** Rows that are drawn, those that sleep first. */
const maxShown = 500

export function SleepPage(): JSX.Element {
  useClusters()
  const found = clusters.value.filter(({ sleep }) => sleep !== undefined)
  const isAsleep = ({ sleep }: ClusterItem): boolean => sleep?.asleepSince !== undefined
  const shown = found.toSorted((a, b) => Number(isAsleep(b)) - Number(isAsleep(a))).slice(0, maxShown)
  return (
    <section class="page">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <span class="count" role="status">
          {clustersKnown.value ? t.count(found.filter(isAsleep).length, found.length) : text.table.listing}
        </span>
      </div>
      {clustersError.value !== '' ? <Notice kind="bad">{clustersError.value}</Notice> : null}
      {clustersKnown.value && found.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      {shown.length === 0 ? null : (
        <Plot head={[t.name, t.state, t.since, t.says, t.rules, t.lastRequest, '']}>
          {shown.map((item) => (
            <Row key={item.name} item={item} />
          ))}
        </Plot>
      )}
      {found.length > maxShown ? <p class="quiet">{t.more(found.length - maxShown)}</p> : null}
    </section>
  )
}

function Row({ item: { name, sleep = {} } }: { readonly item: ClusterItem }): JSX.Element {
  const { asleepSince, awakeSince, message = '', lastRequestTime } = sleep
  return (
    <tr>
      <td>
        <Plain>{name}</Plain>
      </td>
      <td>
        {asleepSince === undefined ? <Badge tone="good">{t.awake}</Badge> : <Badge tone="plain">{t.asleep}</Badge>}
      </td>
      <td>
        <Age since={asleepSince ?? awakeSince} />
      </td>
      <td class="wrap">
        <Plain>{message}</Plain>
      </td>
      <td class="wrap">
        <Plain>{rulesOf(sleep)}</Plain>
      </td>
      <td>
        <Age since={lastRequestTime} />
      </td>
      <td>{asleepSince === undefined ? null : <Wake name={name} isHeld={sleep.asleep === true} />}</td>
    </tr>
  )
}

function rulesOf({ asleep, afterIdle, schedule }: NonNullable<ClusterItem['sleep']>): string {
  if (asleep !== undefined) return asleep ? t.heldAsleep : t.heldAwake
  const { sleep, wake, timeZone = 'UTC' } = schedule ?? {}
  const times = [sleep && t.sleepsAt(sleep), wake && t.wakesAt(wake)].filter((one) => one !== undefined)
  const parts = [afterIdle && t.afterIdle(afterIdle), times.length > 0 && `${times.join(', ')} (${timeZone})`]
  return parts.filter((part) => typeof part === 'string').join('; ') || t.onOrder
}

/**
 * An admin gives the order of `kcp wake`. A user of the logical cluster wakes it as each of its users does, by a write: one
 * that changes nothing. On a host, the console writes no LogicalClusters, so the admin gets the command.
 */
function Wake({ name, isHeld }: { readonly name: string; readonly isHeld: boolean }): JSX.Element | null {
  const problem = useSignal('')
  const isSent = useSignal(false)
  const home = session.value?.home
  const isOwn = onlyCluster() === name
  if (isHeld && home === undefined) return <span class="quiet">{t.byAdmins}</span>
  if (isHeld || (home?.startsWith(clusterPath('')) === false && !isOwn))
    return <Command>{isHeld ? `kcp wake ${name} --hold` : `kcp wake ${name}`}</Command>
  const wake = async (): Promise<void> => {
    problem.value = ''
    const order = { metadata: { annotations: { [wakeOrderAnnotation]: new Date().toISOString() } } }
    const path =
      home === undefined
        ? `${clusterPath(name)}/api/v1/namespaces/default`
        : `${home}/apis/kcp.dev/v1alpha1/logicalclusters/${name}`
    try {
      const body = JSON.stringify(home === undefined ? {} : order)
      await request(path, { method: 'PATCH', contentType: 'application/merge-patch+json', body })
      isSent.value = true
      await readClusters()
    } catch (error) {
      problem.value = messageOf(error)
    }
  }
  return (
    <>
      <button type="button" disabled={isSent.value} onClick={() => void wake()}>
        {isSent.value ? t.wakes : t.wake}
      </button>
      {problem.value === '' ? null : <Notice kind="bad">{visibleText(problem.value)}</Notice>}
    </>
  )
}
