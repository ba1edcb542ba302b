// A list to choose from by typing: kinds and logical clusters.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { matching, type Choice } from '#console/model/matching.ts'
import { text } from '#console/text.ts'
import { Dialog } from './common.tsx'

interface PaletteProps {
  readonly title: string
  readonly choices: readonly Choice[]
  readonly close: () => void
  /** Makes a choice of the text itself, if nothing else fits. */
  readonly other?: (typed: string) => Choice | undefined
}

export function Palette({ title, choices, close, other }: PaletteProps): JSX.Element {
  const typed = useSignal('')
  const at = useSignal(0)
  const list = useRef<HTMLUListElement>(null)
  const found = matching(choices, typed.value, other)
  const choose = (choice: Choice | undefined): void => {
    if (choice === undefined) return
    close()
    choice.run()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') choose(found[at.value])
    else if (event.key === 'ArrowDown') at.value = Math.min(found.length - 1, at.value + 1)
    else if (event.key === 'ArrowUp') at.value = Math.max(0, at.value - 1)
    else return
    event.preventDefault()
    list.current?.children[at.value]?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <Dialog title={title} close={close}>
      <input
        type="search"
        role="combobox"
        list={undefined}
        aria-label={title}
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length === 0 ? undefined : `palette-${at.value}`}
        placeholder={text.palette.placeholder}
        autofocus
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          at.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette-list" role="listbox" aria-label={title} class="palette" ref={list}>
        {found.map((choice, index) => (
          <li
            key={`${choice.label} ${choice.hint ?? ''}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at.value}
            class={index === at.value ? 'selected' : ''}
            onClick={() => choose(choice)}
          >
            <span>{choice.label}</span>
            <span class="quiet">{choice.hint ?? ''}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 ? <p class="quiet">{text.palette.nothing}</p> : null}
    </Dialog>
  )
}
