// Logs of a pod: followed, of several containers at once, searched. Everything in them is text.
import { signal, useComputed, useSignal, type Signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { recordsOf, stringOf, type AnyObject } from '#console/kube/objects.ts'
import { objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { lineBatches } from '#console/kube/lines.ts'
import { messageOf, request } from '#console/kube/request.ts'
import { LogBuffer, matchParts, searchLines, type LogLine } from '#console/model/log-buffer.ts'
import { logText, visibleText } from '#console/model/visible-text.ts'
import { Notice } from '#console/parts/common.tsx'
import { FilterInput } from '#console/parts/filter-input.tsx'
import { text } from '#console/text.ts'

const t = text.logs

/** Longer lines are cut into pieces. */
const maxLineLength = 16_384
const lineHeight = 18

export function containersOf(object: AnyObject): string[] {
  const fields = ['containers', 'initContainers', 'ephemeralContainers'] as const
  return fields.flatMap((field) => recordsOf(object.spec?.[field]).map(({ name }) => stringOf(name)))
}

interface LogsProps {
  readonly target: ObjectRef
  readonly object: AnyObject
}

interface Options {
  readonly containers: readonly string[]
  readonly previous: boolean
  readonly timestamps: boolean
}

export function LogsTab({ target, object }: LogsProps): JSX.Element {
  const containers = containersOf(object)
  const options = useSignal<Options>({ containers: containers.slice(0, 1), previous: false, timestamps: false })
  const search = useSignal('')
  const input = useRef<HTMLInputElement>(null)
  const { lines, error, dropped } = useLogs(target, options.value)
  const shown = useComputed(() => searchLines(lines.value, search.value))
  const toggle = (name: string): void => {
    const { value } = options
    const has = value.containers.includes(name)
    options.value = {
      ...value,
      containers: has ? value.containers.filter((one) => one !== name) : [...value.containers, name],
    }
  }
  return (
    <>
      <div class="toolbar">
        {containers.map((name) => (
          <label key={name} class="check">
            <input type="checkbox" checked={options.value.containers.includes(name)} onChange={() => toggle(name)} />
            {visibleText(name)}
          </label>
        ))}
        <Check
          label={t.previous}
          isOn={options.value.previous}
          set={(previous) => (options.value = { ...options.value, previous })}
        />
        <Check
          label={t.timestamps}
          isOn={options.value.timestamps}
          set={(timestamps) => (options.value = { ...options.value, timestamps })}
        />
        <FilterInput filter={search} label={t.search} input={input} />
        <span class="count" role="status">
          {text.table.count(shown.value.length, lines.value.length)} {dropped.value > 0 ? t.dropped(dropped.value) : ''}
        </span>
      </div>
      {error.value === '' ? null : <Notice kind="bad">{visibleText(error.value)}</Notice>}
      <LogView lines={shown.value} search={search.value} isPrefixed={options.value.containers.length > 1} />
    </>
  )
}

interface CheckProps {
  readonly label: string
  readonly isOn: boolean
  readonly set: (isOn: boolean) => void
}

function Check({ label, isOn, set }: CheckProps): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => set(event.currentTarget.checked)} />
      {label}
    </label>
  )
}

interface Logs {
  readonly lines: Signal<readonly LogLine[]>
  readonly error: Signal<string>
  readonly dropped: Signal<number>
}

function useLogs(target: ObjectRef, options: Options): Logs {
  const logs = useMemo(() => ({ lines: signal<readonly LogLine[]>([]), error: signal(''), dropped: signal(0) }), [])
  useEffect(() => {
    const life = new AbortController()
    const buffer = new LogBuffer()
    let timer: ReturnType<typeof setTimeout> | undefined
    const publish = (): void => {
      timer = undefined
      logs.lines.value = buffer.lines
      logs.dropped.value = buffer.dropped
    }
    logs.error.value = ''
    publish()
    for (const container of options.containers)
      void follow(target, { ...options, container }, life.signal, (texts) => {
        buffer.add(container, texts)
        timer ??= setTimeout(publish, 100)
      }).catch((error: unknown) => {
        if (!life.signal.aborted) logs.error.value = `${container}: ${messageOf(error)}`
      })
    return () => {
      life.abort()
      clearTimeout(timer)
    }
  }, [JSON.stringify(options), objectPath(target)])
  return logs
}

async function follow(
  target: ObjectRef,
  { container, previous, timestamps }: Omit<Options, 'containers'> & { readonly container: string },
  signal: AbortSignal,
  add: (texts: readonly string[]) => void,
): Promise<void> {
  const query = {
    container,
    follow: previous ? 'false' : 'true',
    previous: String(previous),
    timestamps: String(timestamps),
    tailLines: '1000',
  }
  const response = await request(`${objectPath(target)}/log`, { accept: '*/*', query, signal })
  for await (const lines of lineBatches(response, { keepEmpty: true, maxLength: maxLineLength }))
    add(lines.map(logText))
}

interface LogViewProps {
  readonly lines: readonly LogLine[]
  readonly search: string
  readonly isPrefixed: boolean
}

/** The lines in sight. It stays at the end while a user looks at the end. */
function LogView({ lines, search, isPrefixed }: LogViewProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const isAtEnd = useRef(true)
  useEffect(() => {
    if (isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [lines])
  const from = Math.max(0, Math.floor(top.value / lineHeight) - 20)
  const shown = lines.slice(from, from + 160)
  const onScroll = (element: HTMLDivElement): void => {
    top.value = element.scrollTop
    isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - lineHeight
  }
  return (
    <div
      class="log"
      ref={box}
      tabIndex={0}
      role="log"
      aria-label={text.object.tab.logs}
      onScroll={(event) => onScroll(event.currentTarget)}
    >
      <div class="log-body" style={{ height: `${lines.length * lineHeight}px` }}>
        {shown.map((line, index) => (
          <div key={line.number} class="log-line" style={{ transform: `translateY(${(from + index) * lineHeight}px)` }}>
            {isPrefixed ? <span class="quiet">{line.container} </span> : null}
            {matchParts(line.text, search).map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part))}
          </div>
        ))}
      </div>
      {lines.length === 0 ? <p class="quiet">{t.empty}</p> : null}
    </div>
  )
}
