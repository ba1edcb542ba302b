// The filter above a table: `/` focuses it, Escape clears it and goes back to the table.
import type { Signal } from '@preact/signals'
import type { JSX, RefObject } from 'preact'
import { useKeys } from '#console/state/keys.ts'
import { text } from '#console/text.ts'

interface FilterInputProps {
  readonly filter: Signal<string>
  readonly label: string
  readonly input: RefObject<HTMLInputElement | null>
}

export function FilterInput({ filter, label, input }: FilterInputProps): JSX.Element {
  useKeys({
    '/': { help: text.help.filter, run: () => input.current?.focus() },
    Escape: { help: text.help.clear, run: () => (filter.value = '') },
  })
  return (
    <input
      ref={input}
      type="search"
      class="filter"
      aria-label={label}
      title={text.table.filterHint}
      placeholder={`/ ${label}`}
      value={filter.value}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => (filter.value = event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') filter.value = ''
        if (event.key === 'Escape' || event.key === 'Enter' || event.key === 'ArrowDown') event.currentTarget.blur()
      }}
    />
  )
}
