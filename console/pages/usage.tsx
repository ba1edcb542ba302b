// What logical clusters use: how near to their limits they are, and what they have used hour by hour.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { UsageRow } from '#crds/index.ts'
import { requestJson } from '#console/kube/request.ts'
import { bytesText } from '#console/model/bytes.ts'
import { byShare, isNear, limitShares, type LimitShare } from '#console/model/usage.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Badge, Link, Meter, Notice, Plain, Plot } from '#console/parts/common.tsx'
import { FilterInput } from '#console/parts/filter-input.tsx'
import { clusters, clustersError, clustersKnown, useClusters, type ClusterItem } from '#console/state/clusters.ts'
import { useLoaded } from '#console/state/load.ts'
import { text } from '#console/text.ts'

const t = text.usage
/** Rows that are drawn; a filter finds the others. */
const maxShown = 200
const historyEveryMs = 60_000

export function UsagePage({ cluster }: { readonly cluster?: string | undefined }): JSX.Element {
  useClusters()
  const only = clusters.value.length === 1 ? clusters.value[0]?.name : undefined
  const name = cluster ?? only
  return (
    <section class="page">
      {clustersError.value !== '' ? <Notice kind="bad">{clustersError.value}</Notice> : null}
      {name === undefined ? <List /> : <One key={name} name={name} />}
    </section>
  )
}

function List(): JSX.Element {
  const filter = useSignal('')
  const input = useRef<HTMLInputElement>(null)
  const limited = byShare(clusters.value)
  const found = limited.filter(({ name }) => name.includes(filter.value.trim()))
  const others = clusters.value.filter(({ limits }) => limits === undefined)
  return (
    <>
      <div class="toolbar">
        <h1>{t.title}</h1>
        <FilterInput filter={filter} label={t.filter} input={input} />
        <span class="count" role="status">
          {clustersKnown.value ? t.count(limited.length) : text.table.listing}
        </span>
      </div>
      {clustersKnown.value && limited.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      {found.length === 0 ? null : (
        <Plot head={[t.name, t.state, t.limits]}>
          {found.slice(0, maxShown).map((item) => (
            <tr key={item.name}>
              <td>
                <Link to={{ page: 'usage', cluster: item.name }}>{item.name}</Link>
              </td>
              <td>
                <State item={item} />
              </td>
              <td>
                <Shares shares={limitShares(item)} />
              </td>
            </tr>
          ))}
        </Plot>
      )}
      {found.length > maxShown ? <p class="quiet">{t.more(found.length - maxShown)}</p> : null}
      {others.length === 0 ? null : (
        <>
          <h2>{t.unlimited(others.length)}</h2>
          <p class="wrap">
            {others.slice(0, maxShown).map(({ name }) => (
              <span key={name}>
                <Link to={{ page: 'usage', cluster: name }}>{name}</Link>{' '}
              </span>
            ))}
          </p>
        </>
      )}
    </>
  )
}

function State({ item }: { readonly item: ClusterItem }): JSX.Element {
  const shares = limitShares(item)
  if (shares.some(({ share = 0 }) => share >= 1)) return <Badge tone="bad">{t.reached}</Badge>
  return shares.some(isNear) ? <Badge tone="wait">{t.near}</Badge> : <Badge tone="good">{t.room}</Badge>
}

function Shares({ shares }: { readonly shares: readonly LimitShare[] }): JSX.Element {
  return (
    <div class="meters">
      {shares.map(({ field, used, limit, share }) =>
        share === undefined ? (
          <span key={field} class="quiet">
            {visibleText(t.limitOf(field, limit))}
          </span>
        ) : (
          <Meter key={field} label={visibleText(t.usedOf(field, used, limit))} used={share} of={1} />
        ),
      )}
    </div>
  )
}

function One({ name }: { readonly name: string }): JSX.Element {
  const item = clusters.value.find((one) => one.name === name)
  const loaded = useLoaded(
    (signal) =>
      requestJson<{ hours: number; rows: readonly UsageRow[] }>('api/usage', { query: { cluster: name }, signal }),
    [name],
    historyEveryMs,
  )
  const { value, error } = loaded.value
  return (
    <>
      <h1>{visibleText(t.titleOf(name))}</h1>
      {item?.near === undefined ? null : (
        <Notice kind={limitShares(item).some(({ share = 0 }) => share >= 1) ? 'bad' : 'wait'}>
          <Plain>{item.near}</Plain>
        </Notice>
      )}
      {item?.limits === undefined ? <Notice kind="info">{t.noLimits}</Notice> : <Shares shares={limitShares(item)} />}
      <h2>{t.history(value?.hours ?? 24)}</h2>
      {error === undefined ? null : <Notice kind="bad">{visibleText(error)}</Notice>}
      {value === undefined ? null : <History rows={value.rows} />}
    </>
  )
}

function History({ rows }: { readonly rows: readonly UsageRow[] }): JSX.Element {
  if (rows.length === 0) return <Notice kind="info">{t.noHistory}</Notice>
  const hours = (seconds: number): string => (seconds / 3600).toLocaleString('en', { maximumFractionDigits: 2 })
  return (
    <Plot head={[t.hour, t.requests, t.watchHours, t.objects, t.storage, t.cpuHours, t.memory, t.podHours]}>
      {rows.toReversed().map((row) => (
        <tr key={row.hour}>
          <td>
            <time dateTime={row.hour}>{row.hour.replace('T', ' ').replace(':00Z', ' UTC')}</time>
          </td>
          <td>{row.requests.toLocaleString('en')}</td>
          <td>{hours(row.watchSeconds)}</td>
          <td>{hours(row.objectSeconds)}</td>
          <td>{bytesText(row.byteSeconds / 3600)}</td>
          <td>{hours(row.cpuSeconds)}</td>
          <td>{bytesText(row.memoryByteSeconds / 3600)}</td>
          <td>{hours(row.podSeconds)}</td>
        </tr>
      ))}
    </Plot>
  )
}
