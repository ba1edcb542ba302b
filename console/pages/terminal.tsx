// A terminal in a container: xterm over the WebSocket of `exec`, opened when a user asks for it.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { AnyObject } from '#console/kube/objects.ts'
import { objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { messageOf, urlOf } from '#console/kube/request.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Command, Notice } from '#console/parts/common.tsx'
import { text } from '#console/text.ts'
import { containersOf } from './logs.tsx'

const t = text.terminal

export function TerminalTab({
  target,
  object,
}: {
  readonly target: ObjectRef
  readonly object: AnyObject
}): JSX.Element {
  const containers = containersOf(object)
  const container = useSignal(containers[0] ?? '')
  const command = useSignal('sh')
  const state = useSignal<'closed' | 'opening' | 'open'>('closed')
  const end = useSignal('')
  const box = useRef<HTMLDivElement>(null)
  const close = useRef<(() => void) | undefined>(undefined)
  useEffect(() => () => close.current?.(), [])
  const open = async (): Promise<void> => {
    if (box.current === null) return
    state.value = 'opening'
    end.value = ''
    try {
      const { openTerminal } = await import('#console/lazy/terminal.ts')
      close.current = openTerminal({
        parent: box.current,
        url: execUrl(target, container.value, command.value),
        opened: () => (state.value = 'open'),
        ended: (message) => {
          state.value = 'closed'
          end.value = message === '' ? t.ended : message
        },
      })
    } catch (error) {
      state.value = 'closed'
      end.value = messageOf(error)
    }
  }
  return (
    <>
      <div class="toolbar">
        <label class="check">
          {t.container}
          <select value={container.value} onChange={(event) => (container.value = event.currentTarget.value)}>
            {containers.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="check">
          {t.command}
          <input value={command.value} onInput={(event) => (command.value = event.currentTarget.value)} />
        </label>
        <button type="button" disabled={state.value !== 'closed'} onClick={() => void open()}>
          {t.connect}
        </button>
        <button type="button" disabled={state.value === 'closed'} onClick={() => close.current?.()}>
          {t.disconnect}
        </button>
        <span class="count" role="status">
          {t.state[state.value]}
        </span>
      </div>
      {end.value === '' ? null : <Notice kind="info">{visibleText(end.value)}</Notice>}
      <div class="terminal" ref={box} />
      <Command>{`kcp connect ${target.cluster} -- kubectl -n ${target.namespace} exec -it ${target.name} -- ${command.value}`}</Command>
    </>
  )
}

function execUrl(target: ObjectRef, container: string, command: string): string {
  const url = urlOf(`${objectPath(target)}/exec`, { container, stdin: 'true', stdout: 'true', tty: 'true' })
  for (const word of command.split(/\s+/).filter((part) => part !== '')) url.searchParams.append('command', word)
  url.protocol = url.protocol.replace('http', 'ws')
  return url.href
}
