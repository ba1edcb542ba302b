// The list to choose from that is open: kinds, logical clusters, the help, or none.
import { signal } from '@preact/signals'

export const chooser = signal<'kind' | 'cluster' | 'help' | undefined>(undefined)
