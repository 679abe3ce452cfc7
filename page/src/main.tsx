import { render } from "preact";
import { App } from "./app/App";

const place = document.getElementById("page");
if (place) {
  place.textContent = "";
  render(<App />, place);
}
