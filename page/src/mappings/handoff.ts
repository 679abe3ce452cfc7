/** A record on its way from the dead letters to the mapping editor. */
import { Store } from "../app/store";

export const handedOver = new Store<{ mapping: string | null; source: string | null; record: string } | null>(null);
