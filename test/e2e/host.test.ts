import { installOnHost } from './installation.ts'
import { endLabAfterAll } from './lab.ts'
import { tellStory } from './story.ts'

endLabAfterAll()
tellStory("with a host: stock kubectl through the host's API endpoint", installOnHost)
